// Device code in a kernel: that it compiles for every architecture, and that it gives the bits of the CPU's executor.
#include "kit/kit.h"

#include <array>

#include <fmt/core.h>

#include <forebay/array/cuda/kernel.h>
#include <forebay/ops/eager.h>
#include <forebay/ops/expr/device_code.h>
#include <forebay/ops/expr/run_test.h>

namespace forebay::expr {
namespace {

Program program_of(const Expr& expression) { return compile(std::array{expression}); }
Expr number(double value, Dtype dtype = Dtype::f32) { return Expr::constant(value, dtype); }

/// Each element read and written by the ways that there are: 0 at and put, 1 by rows, 2 by packs, 3 by packs of
/// rows, 4 by packs from any place.
constexpr const char* kThrough = R"(
extern "C" __global__ void through(const __grid_constant__ load_x in, const __grid_constant__ store_out out,
                                   i64 rows, i64 columns, i64 way) {
  const i64 count = rows * columns;
  if (way == 0) {
    for (i64 i = grid_thread(); i < count; i += grid_threads()) out.put(i, in.at(i));
  } else if (way == 1) {
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
      const auto from = in.row(r);
      const auto to = out.row(r);
      for (i64 c = threadIdx.x; c < columns; c += blockDim.x) to.put(c, from.at(c));
    }
  } else if (way == 2) {
    const i64 packs = count / PACK;
    for (i64 p = grid_thread(); p < packs; p += grid_threads()) out.put_pack(p, in.template pack<PACK>(p));
    for (i64 i = packs * PACK + grid_thread(); i < count; i += grid_threads()) out.put(i, in.at(i));
  } else if (way == 4) {
    const i64 packs = (count - 1) / PACK;
    for (i64 p = grid_thread(); p < packs; p += grid_threads()) {
      const auto values = in.template pack_from<PACK>(1 + p * PACK);
      for (int n = 0; n < PACK; ++n) out.put(1 + p * PACK + n, values.at[n]);
    }
    for (i64 i = packs * PACK + grid_thread(); i < count; i += grid_threads()) {
      const i64 place = i == packs * PACK ? 0 : i;  // the first one, and what no pack has
      out.put(place, in.at(place));
    }
  } else {
    const i64 packs = columns / PACK;
    for (i64 r = blockIdx.x; r < rows; r += gridDim.x) {
      const auto from = in.row(r);
      const auto to = out.row(r);
      for (i64 p = threadIdx.x; p < packs; p += blockDim.x) to.put_pack(p, from.template pack<PACK>(p));
      for (i64 c = packs * PACK + threadIdx.x; c < columns; c += blockDim.x) to.put(c, from.at(c));
    }
  }
}
)";

cuda::KernelSource through(const DeviceCode& load, const DeviceCode& store, int pack) {
  return {
      "through", kPackText + load.text + store.text + kThrough, {fmt::format("-DPACK={}", pack)}};
}

struct Case {
  std::string what;
  Expr load;  ///< of source 0 and 1
  std::vector<Array> hosts;
  Expr store;  ///< of the load's result and, as source 1, of the hosts' last one
};

Expr result_of(const Expr& load) { return Expr::leaf(0, load.dtype(), load.shape()); }

/// Loads of every form; most are stored as they are.
std::vector<Case> cases(std::span<const Dtype> dtypes) {
  std::vector<Case> all;
  const auto add = [&](const std::string& what, const Expr& load, std::vector<Array> hosts,
                       const Expr& store = {}) {
    all.push_back({what, load, std::move(hosts), store.valid() ? store : result_of(load)});
  };
  for (Dtype dtype : dtypes) {
    for (std::int64_t columns : {64, 63}) {  // of a whole number of packs, and not
      const Array x = kit::random({7, columns}, dtype, 1, 0, 99);
      const std::string name = fmt::format("{} {}", name_of(dtype), columns);
      add("dense " + name, leaf_like(0, x), {x});
      add("transposed " + name, permute(leaf_like(0, x), {1, 0}), {x});
      for (kit::Layout layout : kit::layouts()) {
        const Array laid = kit::with_layout(x, layout);
        add(fmt::format("layout {} {}", static_cast<int>(layout), name), leaf_like(0, laid),
            {laid});
      }
    }
  }
  const Array x = kit::random({5, 6, 40}, Dtype::f32, 2);
  for (const Dims& shape : {Dims{40}, Dims{6, 1}, Dims{5, 1, 1}, Dims{1, 6, 40}, Dims{}, Dims{1}}) {
    const Array table = kit::random(shape, Dtype::f32, 3, 1, 2);
    add("owned table " + testing::PrintToString(shape), leaf_like(0, x) / Expr::array(table), {x});
    const Expr other = broadcast_to(leaf_like(1, table), x.shape());
    add("second source " + testing::PrintToString(shape), leaf_like(0, x) - other, {x, table},
        Expr::leaf(0, Dtype::f32, x.shape()) * other);
  }
  const Array signal = kit::random({3, 500}, Dtype::f32, 4);
  for (std::int64_t hop : {16, 7}) {
    const Expr frames = Expr::leaf(0, Dtype::f32, {3, 20, 64}, {500, hop, 1});
    add(fmt::format("frames {}", hop), frames, {signal});
    const Array window = kit::random({64}, Dtype::f32, 5);
    add(fmt::format("window {}", hop), frames * broadcast_to(Expr::array(window), {3, 20, 64}),
        {signal});
  }
  const Array image = kit::random({2, 9, 16, 3}, Dtype::u8, 6, 0, 255);
  const Array mean = kit::random({3, 1, 1}, Dtype::f32, 7);
  const Expr planes = cast(permute(leaf_like(0, image), {0, 3, 1, 2}), Dtype::f32);
  add("image", (planes - broadcast_to(Expr::array(mean), planes.shape())) / number(0.3), {image},
      cast(result_of(planes), Dtype::f16));
  const Array wave = kit::random({4, 33}, Dtype::c64, 8);
  add("power", leaf_like(0, wave), {wave},
      unary(Opcode::sqrt, unary(Opcode::norm, result_of(leaf_like(0, wave))) + number(1e-6)));
  add("integers", leaf_like(0, image) / leaf_like(0, image), {image});
  const Array half = kit::random({3, 5, 8}, Dtype::bf16, 9);
  add("last axis of one", reshape(leaf_like(0, half), {120, 1}), {half});
  const Expr numbers = Expr::index({2, 9, 16, 3});
  const auto wide = [](const Expr& e) { return cast(e, Dtype::u64); };
  add("numbers", numbers + wide(leaf_like(0, image)), {image},
      result_of(numbers) * (numbers + wide(leaf_like(1, image))));
  const Expr turned = permute(slice(numbers, 2, 14, 2, -2), {0, 3, 1, 2});
  const Expr part = permute(slice(leaf_like(0, image), 2, 0, 12, 2), {0, 3, 1, 2});
  add("numbers through maps", turned + wide(part), {image}, result_of(turned) + turned);
  const Expr rows = broadcast_to(Expr::index({3, 1, 1}), {2, 3, 9, 16});
  add("numbers of rows", rows + wide(permute(leaf_like(0, image), {0, 3, 1, 2})), {image},
      result_of(rows) + rows);
  add("one element", leaf_like(0, kit::random({}, Dtype::f64, 10)),
      {kit::random({}, Dtype::f64, 10)});
  return all;
}

TEST(DeviceCode, CompilesForEveryArchitecture) {
  const Context context = kit::context(Device::cpu());
  const cuda::CompileOnly all({80, 90, 100, 120});
  for (const Case& c : cases(std::array{Dtype::boolean})) {
    const auto source = through(device_load("load_x", program_of(c.load), context),
                                device_store("store_out", program_of(c.store), context), 4);
    try {
      cuda::load_kernel(source, Device::cuda());
    } catch (const Error& error) {
      FAIL() << c.what << "\n" << error.what() << "\n" << source.text;
    }
  }
  const Expr large = permute(Expr::leaf(0, Dtype::u8, {1 << 16, 1 << 15, 2}), {2, 1, 0});
  const DeviceCode load = device_load("load_x", program_of(large), context);
  EXPECT_NE(load.text.find("using Index = i64;"), std::string::npos);
  cuda::load_kernel(
      through(load, device_store("store_out", program_of(result_of(large)), context), 8),
      Device::cuda());
}

TEST(DeviceCodeCuda, GivesTheBitsOfTheCpu) {
  SKIP_WITHOUT(Device::cuda());
  const Context context = kit::context(Device::cuda()), cpu = kit::context(Device::cpu());
  for (const Case& c : cases(kAllDtypes)) {
    std::vector<Array> hosts = c.hosts;
    const Array loaded = eval(c.load, hosts, cpu);
    const Array want = kit::to_host(eval(c.store, std::vector{loaded, hosts.back()}, cpu), cpu);
    std::vector<ArrayView> sources;
    std::vector<Array> owners;
    for (const Array& host : hosts) {
      owners.push_back(kit::to_device(host, context));
      sources.push_back(owners.back().view());
    }
    DeviceCode load = device_load("load_x", program_of(c.load), context);
    DeviceCode store = device_store("store_out", program_of(c.store), context);
    const std::int64_t columns = want.rank() == 0 ? 1 : want.shape()[want.rank() - 1];
    const std::int64_t rows = want.count() / columns;
    for (int pack : {3, 8}) {
      const auto kernel = cuda::load_kernel(through(load, store, pack), Device::cuda());
      for (std::int64_t way = 0; way < 5; ++way) {
        const Array out = Array::empty(want.shape(), want.dtype(), context);
        fill_bytes(out.view(), 0x5a, context.stream);
        const auto in_words = load.parameter(sources);
        const auto out_words = store.parameter(std::array{sources.back()}, out.data());
        kernel->launch(context.stream, {3}, {64}, 0,
                       {in_words.data(), out_words.data(), &rows, &columns, &way});
        EXPECT_TRUE(kit::same_bits(kit::to_host(out, context), want))
            << c.what << ", packs of " << pack << ", way " << way;
      }
    }
  }
}

}  // namespace
}  // namespace forebay::expr
