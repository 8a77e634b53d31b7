"""The pages that define the format: their tables of ids, the references to their sections, and the length of their lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from deepreduce_tf import IndexCodec, ValueCodec
from deepreduce_tf.codec import APPLICATION_CODEC
from deepreduce_tf.index_codecs import SeededSupport
from deepreduce_tf.stage import registered_stages
from format import reference
from format.reference.frame import APPLICATION

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "format.md", *sorted((ROOT / "docs" / "format").glob("*.md"))]
FOLDERS = ("deepreduce_tf", "horovod_ext", "models", "tests", "benchmarks", "docs")
SOURCES = [ROOT / "README.md", *(path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")))]
REFERENCE_TO_A_SECTION = re.compile(r'(docs/[\w/]+\.md)(?:[,)]? \\?"([^"\\\n]+)\\?")?')


def sections(page: Path) -> set[str]:
    return set(re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE))


def ids_of_page(name: str) -> dict[int, str]:
    """The codecs of the table of ids: id and name, the name without its link."""
    table = re.search(r"^\| id \|.*?\n\n", (ROOT / "docs" / "format" / name).read_text(), re.MULTILINE | re.DOTALL)[0]
    rows = re.findall(r"^\| (\d+) \| (?:\[(\w+)\]\(#[\w-]+\)|([^|]+?)) \|", table, re.MULTILINE)
    return {int(number): linked or text for number, linked, text in rows}


@pytest.mark.parametrize(
    ("name", "kind", "own", "codes"),
    [
        ("index_codes.md", IndexCodec, [SeededSupport], reference.INDEX_CODES),
        ("value_codes.md", ValueCodec, [], reference.VALUE_CODES),
    ],
)
def test_the_table_of_ids_names_the_registered_codecs(name, kind, own, codes):
    stages = [*own, *(stage for stage in registered_stages(kind) if stage.__module__.startswith("deepreduce_tf."))]
    ids = {stage.codec_id: stage.__name__ for stage in stages}
    page = ids_of_page(name)
    assert page.pop(APPLICATION_CODEC) == "a stage that the application defines"
    assert APPLICATION == APPLICATION_CODEC
    assert page == ids, f"docs/format/{name} and the codec_id of the classes of deepreduce_tf differ"
    assert {code.id: code.name for code in codes.values()} == ids, "tests/format/reference and the codec_id of the classes differ"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_name_pages_and_sections_that_exist(page):
    for file, anchor in re.findall(r"\]\(([\w./]*)(?:#([\w-]+))?\)", page.read_text()):
        target = (page.parent / file).resolve() if file else page
        assert target.is_file(), f"{page.name} links to {file}"
        anchors = {re.sub(r"[^\w -]", "", section).lower().replace(" ", "-") for section in sections(target)}
        assert not anchor or anchor in anchors, f"{page.name} links to #{anchor} of {target.name}"


def test_references_in_code_name_pages_and_sections_that_exist():
    found = 0
    for path in SOURCES:
        if path.suffix not in (".py", ".cc", ".h", ".md", ".txt"):
            continue
        for page, section in REFERENCE_TO_A_SECTION.findall(path.read_text()):
            assert (ROOT / page).is_file(), f"{path.relative_to(ROOT)} names {page}, which does not exist"
            assert not section or section in sections(ROOT / page), f'{path.relative_to(ROOT)} names "{section}", no section of {page}'
            found += bool(section)
    assert found > 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_lines_fit_an_editor(page):
    wide = [number for number, line in enumerate(page.read_text().splitlines(), 1) if len(line) > 120]
    assert not wide, f"lines {wide} of {page.relative_to(ROOT)} have more than 120 characters"
