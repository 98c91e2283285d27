#include <forebay/ops/expr/cuda_writer.h>

// Form items: threads load what several items need, then compute and store them.
namespace forebay::expr {
namespace {

void parameters(CudaWriter& w) {
  w.line("\nstruct Parameters {{");
  w.member("i64 packs;       // items of neighbours", 0);
  w.member("i64 first, end;  // items of one element on the last axis", 0);
  w.source.words.push_back(0);
  if (!w.walk.flat) {
    w.member("i64 per_row;     // items", 0);
    w.divisor("by_row", 1);
  }
  w.arrays();
  w.line("}};");
}

void kernel(CudaWriter& w) {
  if (w.has_doubt()) {
    w.line(R"(
/// The elements of an item each by itself, without short ways.
template <int N>
void again(const Parameters& p, const Common& common, i64 item) {{
  Item<1> one;
  one.template find<N>(p, item);
  Doubt none;
#pragma unroll 1
  for (int n = 0; n < N; ++n, one.move(1)) {{
    one.load(p);
    one.compute_and_store(p, common, none);
  }}
}})");
  }
  w.line(R"(
/// Items begin .. end of N.
template <int N>
void items(const Parameters& p, const Common& common, i64 begin, i64 end) {{
  const i64 mine = begin + i64(blockIdx.x) * (kThreads * kItems) + threadIdx.x;
  const int left = int(min(end - mine, i64(kThreads * kItems)));
  Item<N> items[kItems];
#pragma unroll
  for (int k = 0; k < kItems; ++k) {{
    if (k * kThreads >= left) break;
    items[k].template find<N>(p, mine + k * kThreads);
    items[k].load(p);
  }})");
  if (w.has_doubt()) w.line("  Doubt doubt = common.doubt;");
  w.line(R"(#pragma unroll
  for (int k = 0; k < kItems; ++k) {{
    if (k * kThreads >= left) break;
    items[k].compute_and_store(p, common{});
  }})",
         w.has_doubt() ? ", doubt" : "");
  if (w.has_doubt()) {
    w.line(R"(  if (!doubt) return;
#pragma unroll 1
  for (int k = 0; k * kThreads < left; ++k) again<N>(p, common, mine + k * kThreads);)");
  }
  w.line(R"(}}

extern "C" __global__ void __launch_bounds__(kThreads) {}(const __grid_constant__ Parameters p) {{
  const Common common(p);
  items<{}>(p, common, 0, p.packs);
  if (p.first < p.end) items<1>(p, common, p.first, p.end);
}})",
         kKernelName, w.walk.pack);
}

}  // namespace

void write_items(CudaWriter& w) {
  w.line("\nconstexpr int kThreads = {};", w.source.threads);
  w.line("constexpr int kItems = {};  // that a thread has in flight", w.source.items);
  if (w.walk.together > 1)
    w.line("constexpr int kRows = {};   // that an item has", w.walk.together);
  parameters(w);
  write_item(w);
  kernel(w);
}

}  // namespace forebay::expr
