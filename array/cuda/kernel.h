#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <forebay/array/stream.h>

namespace forebay::cuda {

/// Device code as text, for NVRTC. It includes nothing; the prelude (cuda/prelude.cu: the
/// fixed-width integer types, f16/bf16 conversions, saturating casts, complex, NaN-propagating min
/// and max) is put before it.
struct KernelSource {
  std::string name;                  ///< of the extern "C" __global__ function
  std::string text;                  ///< CUDA C++
  std::vector<std::string> options;  ///< -D and others; part of the cache key
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A kernel loaded on one device. Thread-safe. What it loaded stays until the process ends.
class Kernel {
 public:
  virtual ~Kernel() = default;
  /// Enqueues a launch on `stream`; `arguments` are pointers to the parameters, in order. A grid
  /// with an extent of 0 launches nothing. `shared_bytes` may be as large as the device allows
  /// (DeviceLimits). Errors: invalid for a stream of another device; device, naming the kernel and
  /// the launch shape.
  void launch(const Stream& stream, Dim3 grid, Dim3 block, std::size_t shared_bytes,
              std::initializer_list<const void*> arguments) const {
    launch_array(stream, grid, block, shared_bytes, arguments.begin(), Start::behind);
  }
  void launch(const Stream& stream, Dim3 grid, Dim3 block, std::size_t shared_bytes,
              const std::vector<const void*>& arguments) const {
    launch_array(stream, grid, block, shared_bytes, arguments.data(), Start::behind);
  }
  /// As launch, but the kernel may start while the one before it on `stream` comes to its end, from
  /// where that one's blocks all have called the prelude's let_next_kernel_start(). It calls
  /// wait_for_kernel_before() before it touches what that one writes, and in every thread. Before
  /// compute capability 9.0 it starts behind that one.
  void launch_early(const Stream& stream, Dim3 grid, Dim3 block, std::size_t shared_bytes,
                    std::initializer_list<const void*> arguments) const {
    launch_array(stream, grid, block, shared_bytes, arguments.begin(), Start::early);
  }
  /// Blocks of `threads` and `shared_bytes` that one multiprocessor holds at once, times the
  /// multiprocessors.
  virtual int resident_blocks(int threads, std::size_t shared_bytes) const = 0;

 protected:
  enum class Start { behind, early };
  virtual void launch_array(const Stream& stream, Dim3 grid, Dim3 block, std::size_t shared_bytes,
                            const void* const* arguments, Start start) const = 0;
};

/// The kernel for `device`: from this process, else from the disk cache, else compiled by NVRTC
/// (and cached: keyed by source, options, architecture and NVRTC version; written to a temporary
/// name and renamed; checksummed; an unwritable or full disk only costs the caching). The folder is
/// $FOREBAY_CACHE_DIR, else $XDG_CACHE_HOME/forebay, else ~/.cache/forebay. Threads that want the
/// same kernel at once compile it once. Errors: unsupported for a device that is not there or older
/// than compute capability 8.0; device, with NVRTC's log and the source lines it names.
std::shared_ptr<const Kernel> load_kernel(const KernelSource& source, Device device);

/// The cubin of `source` for an architecture such as 90; needs no GPU. Errors: as load_kernel.
/// For an architecture newer than NVRTC it is PTX, which the driver finishes.
std::string compile_kernel(const KernelSource& source, int architecture);

/// What the compiler says of the code that it made: registers, shared memory, spills. Otherwise as compile_kernel.
std::string compiler_report(const KernelSource& source, int architecture);

/// Calls `observer(name, architecture)` from now on before a kernel is compiled that the disk cache does not have: a
/// pipeline's first start on a machine takes seconds, and its user wants to know of what. On the thread that compiles;
/// null: nobody.
void observe_compilation(std::function<void(const std::string& name, int architecture)> observer);

/// While one lives, load_kernel compiles for `architectures` and returns a kernel that cannot be
/// launched, and remembers how many it compiled: so that every op can be prepared without a GPU: by tests, and to look at
/// the text (no architectures: nothing is compiled).
class CompileOnly {
 public:
  explicit CompileOnly(std::vector<int> architectures);
  ~CompileOnly();
  CompileOnly(const CompileOnly&) = delete;
  CompileOnly& operator=(const CompileOnly&) = delete;
  /// Different kernels loaded so far, each compiled for every architecture.
  int compiled() const;
  /// Their sources, in the order of loading.
  std::vector<KernelSource> sources() const;

  struct State;  ///< internal: compile_only.h

 private:
  std::shared_ptr<State> state_;
};

/// The text that load_kernel puts before every kernel.
const char* kernel_prelude();

}  // namespace forebay::cuda
