// The CUDA backend of a build without CUDA.

#include <forebay/array/cuda/backend.h>
#include <forebay/array/cuda/graph.h>
#include <forebay/array/cuda/range.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>

namespace forebay::cuda {
namespace {

constexpr const char* kReason = "Forebay was built without CUDA";

[[noreturn]] void fail_absent() { fail(ErrorKind::unsupported, "{}; use device cpu.", kReason); }

}  // namespace

int device_count() { return 0; }
const char* absence_reason() { return kReason; }
std::shared_ptr<StreamState> make_stream(int) { fail_absent(); }
std::shared_ptr<StreamState> borrow_stream(void*, int) { fail_absent(); }
std::shared_ptr<EventState> make_event(int) { fail_absent(); }
MemoryPtr pinned_memory() { return host_memory(); }
MemoryPtr device_memory(int) { fail_absent(); }
void copy_bytes(void*, Device, const void*, Device, std::size_t, const Stream&) { fail_absent(); }
void fill_bytes(void*, Device, unsigned char, std::size_t, const Stream&) { fail_absent(); }

std::shared_ptr<Graph> Graph::capture(const Stream&, const std::function<void()>&) {
  fail_absent();
}
CompileOnly::CompileOnly(std::vector<int>) { fail_absent(); }
CompileOnly::~CompileOnly() = default;
std::vector<KernelSource> CompileOnly::sources() const { return {}; }
const char* kernel_prelude() { return ""; }
void observe_compilation(std::function<void(const std::string&, int)>) {}
void relax_capture_mode_of_this_thread() {}
Event create_timing_event(Device) { fail_absent(); }
float elapsed_ms(const Event&, const Event&) { fail_absent(); }

Range::Range(std::string_view, std::int64_t, std::int64_t) {}
Range::~Range() = default;

}  // namespace forebay::cuda
