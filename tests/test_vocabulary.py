"""One word for one thing: the project uses the field's terms. Each message says which word to use instead."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SUFFIXES = {".py", ".cc", ".h", ".def", ".md", ".sh", ".toml", ".yaml", ".txt", ""}

# Word in lower case, alone or within an identifier: what to write instead.
INSTEAD = {
    **dict.fromkeys(("place", "places"), "index (of a kept element), position (anywhere else) or element (of the dense form)"),
    **dict.fromkeys(("room", "rooms"), "layer or module (structure), capacity or buffer (memory)"),
    "figures": "metrics (what is counted or measured), numbers or results",
    **dict.fromkeys(("chance", "chances"), "probability"),
    "falling": "descending (an order), decreasing (a number)",
    **dict.fromkeys(("head", "heads"), "header"),
    **dict.fromkeys(("seam", "seams"), "patch"),
    "book": "registry",
}
# Terms of other people, which contain such a word.
TERMS = re.compile(
    r"(?<![a-z])in[ _-]?place(?![a-z]| of)|\bSIMPLE_HEAD\b|\battention heads?\b|\bnum_heads\b|\bgit (rev-parse |show )?HEAD\b",
    re.IGNORECASE,
)
PATTERNS = {
    re.compile(r"\bkMost\w*"): "kMax*",
    re.compile(r"\banother size\b"): "size mismatch",
    # The name of an array; the verb is fine.
    re.compile(r"\bends(?=[\[(]|\.\w|\)?\s*[=+*/-])|[*&]\s?ends\b|\w_ends\b|`ends`"): "splits or offsets",
}


def files() -> list[Path]:
    """All texts of the project but this one."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    paths = (ROOT / name for name in listed if name)
    return [path for path in paths if path.suffix in SUFFIXES and path != Path(__file__).resolve() and path.is_file()]


def words_of(line: str) -> list[str]:
    """The words of a line in lower case, those within snake_case and CamelCase identifiers too."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", line)]


def violations(line: str) -> list[str]:
    line = TERMS.sub("", line)
    found = [f"{word!r}: write {INSTEAD[word]}" for word in words_of(line) if word in INSTEAD]
    return found + [f"{match[0]!r}: write {instead}" for pattern, instead in PATTERNS.items() for match in pattern.finditer(line)]


@pytest.mark.parametrize(
    "line",
    ["kept_places", "FallingOrder", "a ROOM", "kMostBytes", "ends[i]", "inner_ends = 3", "in place of", "the `ends`", "another size"],
)
def test_a_word_is_found_wherever_it_hides(line):
    assert violations(line)


@pytest.mark.parametrize(
    "line", ["replace", "tf.placeholder", "added in place", "e.g. in-place", "the code ends here", "header", "kMaxBytes", "Figure 8"]
)
def test_other_words_are_left_alone(line):
    assert not violations(line)


def test_the_fields_terms_are_used_throughout():
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {violation}"
        for path in files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for violation in violations(line)
    ]
    assert not wrong, f"{len(wrong)} words of the house; the first ones:\n" + "\n".join(wrong[:40])


def prose(page: Path) -> list[tuple[int, str]]:
    """The numbered lines of a page but those of fenced blocks without a language, which quote what a program prints."""
    lines, quoted = [], False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            quoted = not quoted and line == "```"
        elif not quoted:
            lines.append((number, line))
    return lines


def test_lines_of_docs_fit_the_editor():
    pages = [path for path in files() if path.suffix == ".md"]
    long = [f"{page.relative_to(ROOT)}:{number}" for page in pages for number, line in prose(page) if len(line) > 120]
    assert pages and not long, f"break lines of docs at 120 characters; split cells of tables: {long}"
