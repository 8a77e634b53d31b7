#ifndef DEEPREDUCE_LIB_BITS_SPAN_H_
#define DEEPREDUCE_LIB_BITS_SPAN_H_

#include <cstddef>

namespace deepreduce {

// A view of contiguous elements that somebody else owns (std::span is C++20).
template <class T>
struct Span {
  T* data = nullptr;
  size_t size = 0;

  Span() = default;
  Span(T* data, size_t size) : data(data), size(size) {}
  // Any contiguous container, and Span<T> where a Span<const T> is expected.
  template <class Container>
  Span(Container& c) : data(Begin(c)), size(Length(c)) {}  // NOLINT(runtime/explicit)

  T& operator[](size_t i) const { return data[i]; }
  T* begin() const { return data; }
  T* end() const { return data + size; }
  bool empty() const { return size == 0; }
  Span subspan(size_t from, size_t length) const { return Span(data + from, length); }

 private:
  template <class U>
  static U* Begin(const Span<U>& s) {
    return s.data;
  }
  template <class U>
  static size_t Length(const Span<U>& s) {
    return s.size;
  }
  template <class C>
  static auto Begin(C& c) -> decltype(c.data()) {
    return c.data();
  }
  template <class C>
  static auto Length(C& c) -> decltype(static_cast<size_t>(c.size())) {
    return c.size();
  }
};

}  // namespace deepreduce

#endif  // DEEPREDUCE_LIB_BITS_SPAN_H_
