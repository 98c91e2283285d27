#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace forebay {

/// Memory of the calling thread for `count` elements, aligned for vectors, for the body that runs
/// there; each number and type is another. It grows to what is asked for, and stays.
template <class T>
T* thread_room(std::int64_t count, int number) {
  thread_local std::array<std::vector<std::byte>, 5> rooms;
  std::vector<std::byte>& room = rooms[static_cast<std::size_t>(number)];
  constexpr std::size_t kLine = 64;
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T) + kLine;
  if (room.size() < bytes) room.resize(bytes);
  const auto address = reinterpret_cast<std::uintptr_t>(room.data());
  return reinterpret_cast<T*>(room.data() + (kLine - address % kLine) % kLine);
}

}  // namespace forebay
