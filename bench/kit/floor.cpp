#include "kit/floor.h"

#include <algorithm>
#include <cstring>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <forebay/array/parallel.h>
#include "kit/data.h"
#include "kit/timing.h"

namespace forebay::bench {
namespace {

constexpr std::int64_t kLine = 64;
/// Bytes that are asked for ahead; a fifth faster than what the processor asks for by itself.
constexpr std::int64_t kAhead = 4096;

void stream_lines(const char* source, char* target, std::int64_t bytes) {
#if defined(__SSE2__)
  for (std::int64_t line = 0; line < bytes; line += kLine) {
    __builtin_prefetch(source + line + kAhead);
    for (std::int64_t i = line; i < line + kLine; i += 16) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(target + i),
                       _mm_load_si128(reinterpret_cast<const __m128i*>(source + i)));
    }
  }
  _mm_sfence();
#else
  std::memcpy(target, source, static_cast<std::size_t>(bytes));
#endif
}

void copy_on_all_cores(const Array& source, const Array& target) {
  const std::int64_t lines = source.count() / kLine;
  parallel_for(lines, 1 << 12, [&](std::int64_t begin, std::int64_t end) {
    stream_lines(source.as<char>() + begin * kLine, target.as<char>() + begin * kLine,
                 (end - begin) * kLine);
  });
}

}  // namespace

CopyFloor::CopyFloor(double bytes, const Context& context) : context_(context) {
  const std::int64_t half =
      std::max(static_cast<std::int64_t>(bytes / 2) / kLine, std::int64_t{1}) * kLine;
  source_ = Array::empty({half}, Dtype::u8, context);
  target_ = Array::empty({half}, Dtype::u8, context);
  fill_bytes(source_.view(), 1, context.stream);
  fill_bytes(target_.view(), 2, context.stream);
  context.stream.synchronize();
}

double CopyFloor::time_ms(int runs) const {
  return bench::time_ms(context_.stream, runs, [&] {
    if (context_.device().is_cuda()) {
      copy(source_.view(), target_.view(), context_.stream);
    } else {
      context_.stream.enqueue([this] { copy_on_all_cores(source_, target_); });
    }
  });
}

double matrix_rate(Compute compute, std::int64_t side, const Context& context) {
  const Data data{.shape = {side, side}, .low = -1, .high = 1};
  const Dtype dtype = compute == Compute::bf16 ? Dtype::bf16 : Dtype::f32;
  auto pipeline = on({.shape = data.shape, .dtype = dtype, .low = -1, .high = 1});
  pipeline.device(context.device())
      .matmul({.other = make({.shape = data.shape, .dtype = dtype, .low = -1, .high = 1}),
               .compute = dtype == Dtype::bf16 ? Compute::f32 : compute});
  const auto program = warm_program(compile(std::make_shared<const Spec>(pipeline.spec())));
  const auto one_ms = [&](int runs) {
    return time_ms(program->stream(), runs, [&] { program->run(); });
  };
  const int runs = context.device().is_cuda() ? std::max(1, static_cast<int>(10 / one_ms(1))) : 3;
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    best = std::max(best, 2.0 * static_cast<double>(side * side * side) / one_ms(runs));
  }
  return best;
}

}  // namespace forebay::bench
