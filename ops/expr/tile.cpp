#include <forebay/ops/expr/tile.h>

#include <forebay/array/past_cache.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/tile_engine.h>

namespace forebay::expr {
namespace {

bool is_leaf(const Program& program, int instruction) {
  return program.code[static_cast<std::size_t>(instruction)].opcode == Opcode::leaf;
}

std::vector<Dims> dense_outputs(const Program& program) {
  return std::vector<Dims>(program.outputs.size(), dense_strides(program.shape));
}

/// Addresses of the leaves for the calling thread, one load or store after the other.
std::vector<const std::byte*>& address_room() {
  thread_local std::vector<const std::byte*> room;
  room.clear();
  return room;
}

}  // namespace

struct Tile::Impl {
  TileEngine engine;
  Traversal traversal;       // of a load, into a buffer
  Traversal stores;          // of a store, into the whole output
  std::int64_t size;         // bytes of an element of the output
  std::int64_t result_size;  // bytes of an element of source 0; 0 where nothing reads it
  bool is_dense_leaf;        // nothing to compute
  bool result_is_dense;      // what a store needs: source 0 is read element by element

  explicit Impl(const Program& program)
      : engine(program), traversal(engine.traversal(dense_outputs(program))) {
    FOREBAY_REQUIRE(program.outputs.size() == 1, invalid,
                    "tile: the program has {} outputs; it must have one.", program.outputs.size());
    const int output = program.outputs.front();
    size = static_cast<std::int64_t>(size_of(program.code[static_cast<std::size_t>(output)].dtype));
    is_dense_leaf =
        is_leaf(program, output) && !program.leaves.front().is_index() &&
        traversal.nest.is_dense(traversal.nest.leaves.front());
    stores = traversal;
    stores.past_cache = traversal.nest.count * size >= static_cast<std::int64_t>(kPastCacheBytes);
    result_size = 0;
    result_is_dense = true;
    for (std::size_t i = 0; i < program.leaves.size(); ++i) {
      const Program::Leaf& leaf = program.leaves[i];
      if (leaf.source != 0) continue;
      result_size = static_cast<std::int64_t>(size_of(leaf.dtype));
      result_is_dense &= leaf.offset == 0 && traversal.nest.is_dense(traversal.nest.leaves[i]);
    }
  }
};

Tile::Tile(const Program& program) : impl_(std::make_unique<Impl>(program)) {}
Tile::~Tile() = default;
Tile::Tile(Tile&&) noexcept = default;
Tile& Tile::operator=(Tile&&) noexcept = default;

const void* Tile::load(std::span<const ArrayView> sources, std::int64_t begin, std::int64_t n,
                       void* buffer) const {
  std::vector<const std::byte*>& leaves = address_room();
  impl_->engine.leaf_addresses(sources, leaves);
  if (impl_->is_dense_leaf) return leaves.front() + begin * impl_->size;
  // An output whose element `begin` is the buffer's first.
  std::byte* const output = static_cast<std::byte*>(buffer) - begin * impl_->size;
  impl_->engine.run(impl_->traversal, leaves, {&output, 1}, begin, n);
  return buffer;
}

void Tile::store(const void* result, std::span<const ArrayView> sources, std::int64_t begin,
                 std::int64_t n, void* out) const {
  FOREBAY_REQUIRE(impl_->result_is_dense, invalid,
                  "tile: a store reads the result (source 0) through an index map; it must read "
                  "element i for element i.");
  std::vector<const std::byte*>& leaves = address_room();
  impl_->engine.leaf_addresses(sources, leaves,
                               static_cast<const std::byte*>(result) - begin * impl_->result_size);
  std::byte* const output = static_cast<std::byte*>(out);
  impl_->engine.run(impl_->stores, leaves, {&output, 1}, begin, n);
}

bool Tile::is_plain() const {
  const Program& program = impl_->engine.program();
  return impl_->is_dense_leaf && program.leaves.front().source == 0 &&
         program.leaves.front().offset == 0;
}

}  // namespace forebay::expr
