#pragma once

// Internal: where each value of a plan lies. A slot has one block on the host and, for a GPU, one
// on the device, so that all a batch needs travels in one copy; temporaries share one block, and
// memory within it when they do not live at the same time.

#include <cstddef>
#include <vector>

#include <forebay/pipeline/plan.h>

namespace forebay {

struct MemoryMap {
  enum class Block : std::uint8_t { none, slot_host, slot_device, shared_host, shared_device };
  struct Place {
    Block block = Block::none;
    std::size_t offset = 0;  ///< bytes, a multiple of kAlignment
  };
  static constexpr std::size_t kAlignment = 256;

  std::vector<Place> places;  ///< by value number; a view has the place of its base
  /// i64 [3] epoch, batch and seed, then i64 [rows] sample ids: at these offsets of slot_host and of
  /// slot_device.
  std::size_t position_offset = 0, ids_offset = kAlignment;
  /// The first bytes of slot_host, which travel to the first bytes of slot_device; 0 without a GPU.
  std::size_t travelling = 0;
  std::size_t slot_host = 0, slot_device = 0, shared_host = 0, shared_device = 0;  ///< bytes
};

MemoryMap map_memory(const Plan& plan);

/// Rounded up to a multiple of MemoryMap::kAlignment.
std::size_t aligned(std::size_t bytes);
std::size_t bytes_of(const ArraySpec& spec);

}  // namespace forebay
