// cuFFT: its plans, and what runs around it. More than 400 lines, as nobody else needs the plans.

#include <cuda_runtime_api.h>
#include <cufft.h>

#include <algorithm>
#include <list>
#include <memory>
#include <mutex>

#include <forebay/array/cuda/device.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/fft/fft.h>
#include <forebay/ops/fft/rows.h>

namespace forebay {
namespace embedded {
extern const char* const fft_cu;
}
namespace dft {
namespace {

// ---- Plans.

const char* text(cufftResult status) {
  switch (status) {
    case CUFFT_INVALID_PLAN:
      return "CUFFT_INVALID_PLAN";
    case CUFFT_ALLOC_FAILED:
      return "CUFFT_ALLOC_FAILED";
    case CUFFT_INVALID_TYPE:
      return "CUFFT_INVALID_TYPE";
    case CUFFT_INVALID_VALUE:
      return "CUFFT_INVALID_VALUE";
    case CUFFT_INTERNAL_ERROR:
      return "CUFFT_INTERNAL_ERROR";
    case CUFFT_EXEC_FAILED:
      return "CUFFT_EXEC_FAILED";
    case CUFFT_SETUP_FAILED:
      return "CUFFT_SETUP_FAILED";
    case CUFFT_INVALID_SIZE:
      return "CUFFT_INVALID_SIZE";
    case CUFFT_UNALIGNED_DATA:
      return "CUFFT_UNALIGNED_DATA";
    case CUFFT_INVALID_DEVICE:
      return "CUFFT_INVALID_DEVICE";
    case CUFFT_NO_WORKSPACE:
      return "CUFFT_NO_WORKSPACE";
    case CUFFT_NOT_IMPLEMENTED:
      return "CUFFT_NOT_IMPLEMENTED";
    case CUFFT_NOT_SUPPORTED:
      return "CUFFT_NOT_SUPPORTED";
    default:
      return "unknown status";
  }
}

/// Errors: device; resource for lack of memory.
void check_cufft(cufftResult status, const char* call, const char* op) {
  FOREBAY_REQUIRE(status != CUFFT_ALLOC_FAILED, resource,
                  "{}: `{}` found too little memory on the device ({}).", op, call, text(status));
  FOREBAY_REQUIRE(status == CUFFT_SUCCESS, device, "{}: CUDA failed at `{}`: {} ({}).", op, call,
                  text(status), static_cast<int>(status));
}

/// What a plan depends on: `batch` one-dimensional transforms of `points`, laid out as in
/// cufftMakePlanMany64.
struct PlanKey {
  int device = 0;
  cufftType type = CUFFT_C2C;
  long long points = 1, batch = 1;
  long long extent = 1, stride = 1, distance = 1;              ///< of the input
  long long extent_out = 1, stride_out = 1, distance_out = 1;  ///< of the output
  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// A plan without a work area of its own: give it one of work_bytes with cufftSetWorkArea.
class Plan {
 public:
  /// Errors: unsupported for what cuFFT cannot plan, resource when memory is short, device.
  Plan(const PlanKey& key, const char* op);
  ~Plan();
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;

  const PlanKey& key() const { return key_; }
  cufftHandle handle() const { return handle_; }
  std::size_t work_bytes() const { return work_bytes_; }

 private:
  PlanKey key_;
  cufftHandle handle_ = CUFFT_PLAN_NULL;
  std::size_t work_bytes_ = 0;
};

Plan::Plan(const PlanKey& key, const char* op) : key_(key) {
  const cuda::DeviceGuard guard(key.device);
  check_cufft(cufftCreate(&handle_), "cufftCreate", op);
  cufftResult status = cufftSetAutoAllocation(handle_, 0);
  if (status == CUFFT_SUCCESS) {
    long long n = key.points, extent = key.extent, extent_out = key.extent_out;
    status =
        cufftMakePlanMany64(handle_, 1, &n, &extent, key.stride, key.distance, &extent_out,
                            key.stride_out, key.distance_out, key.type, key.batch, &work_bytes_);
  }
  if (status == CUFFT_SUCCESS) return;
  cufftDestroy(handle_);
  FOREBAY_REQUIRE(status != CUFFT_INVALID_SIZE && status != CUFFT_NOT_SUPPORTED, unsupported,
                  "{}: cuFFT has no plan for {} transforms of {} points ({}). Run this stage with "
                  "device: cpu, or choose "
                  "another `n`.",
                  op, key.batch, key.points, text(status));
  check_cufft(status, "cufftMakePlanMany64", op);
}

Plan::~Plan() {
  try {
    const cuda::DeviceGuard guard(key_.device);
    cufftDestroy(handle_);
  } catch (const Error&) {  // the device is lost, and the plan with it
  }
}

constexpr std::size_t kMaxIdle = 64;

struct Idle {
  std::mutex mutex;
  std::list<std::unique_ptr<Plan>> plans;  // the last used first
};

/// Never destroyed: at process exit the driver may be gone before static objects are.
Idle& idle() {
  static Idle& one = *new Idle;
  return one;
}

void give_back(Plan* plan) {
  std::unique_ptr<Plan> dropped;  // destroyed outside the lock: cuFFT may wait for the device
  const std::lock_guard lock(idle().mutex);
  idle().plans.emplace_front(plan);
  if (idle().plans.size() > kMaxIdle) {
    dropped = std::move(idle().plans.back());
    idle().plans.pop_back();
  }
}

/// A plan that nobody else uses while the returned pointer lives: making one takes from a fraction
/// of a millisecond to many, so idle ones are kept, the 64 used last of the process. They hold
/// tables, a few kilobytes for most lengths.
std::shared_ptr<Plan> borrow_plan(const PlanKey& key, const char* op) {
  {
    const std::lock_guard lock(idle().mutex);
    auto& plans = idle().plans;
    for (auto it = plans.begin(); it != plans.end(); ++it) {
      if ((*it)->key() == key) {
        Plan* plan = it->release();
        plans.erase(it);
        return std::shared_ptr<Plan>(plan, give_back);
      }
    }
  }
  return std::shared_ptr<Plan>(new Plan(key, op), give_back);
}

// ---- The body.

constexpr std::size_t align(std::size_t bytes) { return (bytes + 255) / 256 * 256; }

std::size_t bytes_of(std::int64_t count, Dtype dtype) {
  return static_cast<std::size_t>(count) * size_of(dtype);
}

/// What cuFFT does not do itself. Each of packs, finishes and scales is one pass over memory.
struct Around {
  bool middle = false;    ///< an axis in the middle: its rows are laid side by side and back
  bool packs = false;     ///< x is not what cuFFT reads
  bool finishes = false;  ///< its result is not the op's
  bool scales = false;    ///< the scale, where it can be part of neither
};

Around around_of(const Transform& t) {
  Around around;
  // One stride and one distance cannot walk an axis in the middle.
  around.middle = t.outer > 1 && t.inner > 1;
  around.packs = t.points == 1 || around.middle || t.in != t.engine_in() || t.extent < t.read() ||
                 t.engine == Engine::c2r;
  around.finishes = t.points > 1 && (around.middle || t.mirror);
  around.scales = !around.packs && !around.finishes && t.scale != 1;
  return around;
}

/// Whether one kernel, which takes a third of a second to compile once, is better than cuFFT and
/// passes beside it.
bool is_worth_a_kernel(const Transform& t) {
  const Around around = around_of(t);
  constexpr std::int64_t kPoints = 1 << 20;
  return (around.packs || around.finishes || around.scales) && t.rows() >= kPoints / t.points;
}

/// Up to three steps: our own kernel where x is not what cuFFT reads (`pack`), cuFFT, our own
/// kernel where cuFFT's result is not the op's (`finish`) or is not scaled yet.
class CudaBody final : public Body {
 public:
  CudaBody(const Transform& transform, const Context& context)
      : t_(transform), device_(context.device()), around_(around_of(transform)) {
    if (around_.packs) pack_ = load_pack();
    if (around_.finishes || around_.scales) finish_ = load_finish();
  }

  /// Plans on the first call, since that needs the device, which preparing must not.
  std::size_t scratch_bytes() const override {
    if (t_.rows() == 0 || t_.points == 1) return 0;
    return align(plan().work_bytes()) + align(staged_in_bytes()) + staged_out_bytes();
  }

  void run(std::span<const ArrayView> inputs, std::span<const ArrayView> outputs,
           const Launch& launch) override {
    if (t_.rows() == 0) return;
    const ArrayView& out = outputs[0];
    if (t_.points == 1) {
      pack(inputs[0].data, out.data, launch.stream);
      return;
    }
    auto* const work = static_cast<char*>(launch.scratch);
    char* const staged = work + align(plan().work_bytes());
    void* from = inputs[0].data;
    if (around_.packs) {
      pack(from, staged, launch.stream);
      from = staged;
    } else if (!aligned(from) && t_.engine == Engine::r2c) {
      ArrayView copied = inputs[0];
      copied.data = staged;
      copy(inputs[0], copied, launch.stream);
      from = staged;
    }
    void* to = out.data;
    // A complex transform may write over what it reads; the others change the length of a row.
    if (around_.middle) to = t_.engine == Engine::c2c ? staged : staged + align(staged_in_bytes());
    FOREBAY_REQUIRE(aligned(from) && aligned(to), invalid,
                    "{}: cuFFT needs {}-byte aligned memory, but {} is at {}.", t_.name,
                    alignment(), aligned(to) ? "`x`" : "`out`", aligned(to) ? from : to);
    execute(from, to, work, launch.stream);
    finish(to, out.data, launch.stream);
  }

 private:
  std::shared_ptr<const cuda::Kernel> load(const char* name,
                                           std::vector<std::string> options) const {
    options.push_back(fmt::format("-DREAL={}", name_of(t_.real)));
    return cuda::load_kernel({name, embedded::fft_cu, std::move(options)}, device_);
  }
  std::shared_ptr<const cuda::Kernel> load_pack() const {
    const Dtype out = t_.points == 1 ? t_.out.dtype : t_.engine_in();
    return load("fft_pack", {"-DPACK=1", fmt::format("-DIN={}", name_of(t_.in)),
                             fmt::format("-DOUT={}", name_of(out))});
  }
  std::shared_ptr<const cuda::Kernel> load_finish() const {
    const Dtype written = t_.engine == Engine::c2r ? t_.real : complex_of(t_.real);
    const std::string option = fmt::format("-DWRITTEN={}", name_of(written));
    if (around_.middle) return load("fft_unpack", {"-DUNPACK=1", option});
    if (t_.mirror) return load("fft_mirror", {"-DMIRROR=1", option});
    return load("fft_scale", {"-DSCALE=1", option});
  }

  /// cuFFT wants real data, too, aligned like complex data.
  std::size_t alignment() const { return size_of(complex_of(t_.real)); }
  bool aligned(const void* data) const {
    return reinterpret_cast<std::uintptr_t>(data) % alignment() == 0;
  }

  /// For packed rows, or a copy of real input that is not aligned.
  std::size_t staged_in_bytes() const {
    if (around_.packs) return bytes_of(t_.rows() * t_.read(), t_.engine_in());
    return t_.engine == Engine::r2c ? bytes_of(t_.rows() * t_.extent, t_.real) : 0;
  }
  std::size_t staged_out_bytes() const {
    if (!around_.middle || t_.engine == Engine::c2c) return 0;
    return bytes_of(t_.rows() * t_.written(),
                    t_.engine == Engine::c2r ? t_.real : complex_of(t_.real));
  }

  static void launch_over(const cuda::Kernel& kernel, std::int64_t total, const Stream& stream,
                          const std::vector<const void*>& arguments) {
    constexpr int kThreads = 256;
    const auto blocks = std::min<std::int64_t>((total + kThreads - 1) / kThreads, 1 << 20);
    kernel.launch(stream, {static_cast<unsigned>(blocks)}, {kThreads}, 0, arguments);
  }

  /// Calls `call` with the scale in the transform's real type.
  template <class F>
  void with_scale(double scale, F&& call) const {
    const auto single = static_cast<float>(scale);
    call(t_.real == Dtype::f64 ? static_cast<const void*>(&scale) : &single);
  }

  void pack(const void* x, void* packed, const Stream& stream) const {
    const std::int64_t read = t_.points == 1 ? 1 : t_.read();
    const std::int64_t total = t_.rows() * read;
    const std::int64_t packed_inner = t_.outer == 1 ? t_.inner : 1;
    const std::int64_t hermitian = t_.engine == Engine::c2r ? t_.points : 0;
    with_scale(t_.scale, [&](const void* scale) {
      launch_over(
          *pack_, total, stream,
          {&x, &packed, &total, &read, &t_.extent, &t_.inner, &packed_inner, &hermitian, scale});
    });
  }

  void finish(void* from, void* out, const Stream& stream) const {
    const std::int32_t inverse = t_.mirror && t_.inverse ? 1 : 0;
    with_scale(around_.packs ? 1 : t_.scale, [&](const void* scale) {
      if (around_.scales) {
        const std::int64_t total = t_.rows() * t_.extent_out;
        launch_over(*finish_, total, stream, {&out, &total, scale});
      } else if (around_.middle) {
        const std::int64_t total = t_.rows() * t_.extent_out, written = t_.written();
        launch_over(*finish_, total, stream,
                    {&from, &out, &total, &written, &t_.extent_out, &t_.inner, &inverse, scale});
      } else if (around_.finishes) {
        const std::int64_t total = t_.rows() * t_.half();
        launch_over(*finish_, total, stream,
                    {&out, &total, &t_.points, &t_.inner, &inverse, scale});
      }
    });
  }

  Plan& plan() const {
    if (plan_ == nullptr) {
      PlanKey key;
      key.device = device_.index;
      const bool wide = t_.real == Dtype::f64;
      switch (t_.engine) {
        case Engine::r2c:
          key.type = wide ? CUFFT_D2Z : CUFFT_R2C;
          break;
        case Engine::c2r:
          key.type = wide ? CUFFT_Z2D : CUFFT_C2R;
          break;
        case Engine::c2c:
          key.type = wide ? CUFFT_Z2Z : CUFFT_C2C;
          break;
      }
      key.points = t_.points;
      key.batch = t_.rows();
      key.extent = around_.packs ? t_.read() : t_.extent;
      key.extent_out = around_.middle ? t_.written() : t_.extent_out;
      const bool strided = t_.outer == 1 && t_.inner > 1;
      key.stride = key.stride_out = strided ? t_.inner : 1;
      key.distance = strided ? 1 : key.extent;
      key.distance_out = strided ? 1 : key.extent_out;
      plan_ = borrow_plan(key, t_.name);
    }
    return *plan_;
  }

  void execute(void* from, void* to, void* work, const Stream& stream) const {
    const cuda::DeviceGuard guard(device_.index);
    const cufftHandle handle = plan().handle();
    check_cufft(cufftSetStream(handle, static_cast<cudaStream_t>(stream.native())),
                "cufftSetStream", t_.name);
    if (plan().work_bytes() > 0) {
      check_cufft(cufftSetWorkArea(handle, work), "cufftSetWorkArea", t_.name);
    }
    const int direction = t_.inverse ? CUFFT_INVERSE : CUFFT_FORWARD;
    const auto as = [](auto* type, void* data) { return static_cast<decltype(type)>(data); };
    constexpr cufftReal* r = nullptr;
    constexpr cufftComplex* c = nullptr;
    constexpr cufftDoubleReal* d = nullptr;
    constexpr cufftDoubleComplex* z = nullptr;
    cufftResult status = CUFFT_INVALID_TYPE;
    switch (plan().key().type) {
      case CUFFT_R2C:
        status = cufftExecR2C(handle, as(r, from), as(c, to));
        break;
      case CUFFT_C2R:
        status = cufftExecC2R(handle, as(c, from), as(r, to));
        break;
      case CUFFT_C2C:
        status = cufftExecC2C(handle, as(c, from), as(c, to), direction);
        break;
      case CUFFT_D2Z:
        status = cufftExecD2Z(handle, as(d, from), as(z, to));
        break;
      case CUFFT_Z2D:
        status = cufftExecZ2D(handle, as(z, from), as(d, to));
        break;
      case CUFFT_Z2Z:
        status = cufftExecZ2Z(handle, as(z, from), as(z, to), direction);
        break;
    }
    check_cufft(status, "cufftExec", t_.name);
  }

  Transform t_;
  Device device_;
  Around around_;
  std::shared_ptr<const cuda::Kernel> pack_, finish_;
  mutable std::shared_ptr<Plan> plan_;
};

}  // namespace

std::unique_ptr<Body> prepare_cuda(const Transform& transform, const Problem& problem,
                                   const Context& context) {
  const bool fused = !problem.prologue.empty() || problem.epilogue.valid();
  if (fused || (is_worth_a_kernel(transform) && rows_fit(transform)))
    return prepare_rows(transform, problem, context);
  return std::make_unique<CudaBody>(transform, context);
}

}  // namespace dft

std::unique_ptr<Body> fft_cuda(const Op& op, const Problem& problem, const Context& context) {
  return dft::prepare_cuda(dft::resolve(dft::Kind::fft, op.settings<Fft>(), problem.inputs[0]),
                           problem, context);
}

}  // namespace forebay
