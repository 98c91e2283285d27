#include <nvrtc.h>

#include <memory>

#include <forebay/array/cuda/check.h>
#include <forebay/array/cuda/kernel.h>
#include <forebay/array/cuda/kernel_cache.h>
#include <forebay/array/require.h>

namespace forebay::embedded {
extern const char* const prelude_cu;
}

namespace forebay::cuda {
namespace {

using Program = std::unique_ptr<std::remove_pointer_t<nvrtcProgram>, void (*)(nvrtcProgram)>;

/// The prelude and the kernel's text, each with its own line numbers in NVRTC's log.
Program create_program(const KernelSource& source) {
  const std::string name = source.name + ".cu";
  const std::string text = fmt::format("#line 1 \"prelude.cu\"\n{}\n#line 1 \"{}\"\n{}",
                                       kernel_prelude(), name, source.text);
  nvrtcProgram program = nullptr;
  check(nvrtcCreateProgram(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr),
        "nvrtcCreateProgram");
  return Program(program, [](nvrtcProgram p) { nvrtcDestroyProgram(&p); });
}

std::string log_of(nvrtcProgram program) {
  std::size_t size = 0;
  check(nvrtcGetProgramLogSize(program, &size), "nvrtcGetProgramLogSize");
  std::string log(size, '\0');
  check(nvrtcGetProgramLog(program, log.data()), "nvrtcGetProgramLog");
  log.erase(log.find_last_not_of(std::string("\n\0", 2)) + 1);
  return log;
}

/// `sm_80`, or `sm_90a`, which has instructions of Hopper alone; for a GPU that this NVRTC does not
/// know, the newest of its generation that it does (whose cubins the GPU runs), else `compute_` and
/// the newest of all, as PTX for the driver to finish.
std::string target_of(int architecture) {
  int count = 0;
  check(nvrtcGetNumSupportedArchs(&count), "nvrtcGetNumSupportedArchs");
  std::vector<int> known(static_cast<std::size_t>(count));
  check(nvrtcGetSupportedArchs(known.data()), "nvrtcGetSupportedArchs");
  int best = 0;
  for (int candidate : known) {
    if (candidate <= architecture && candidate > best) best = candidate;
  }
  if (best == 0) return fmt::format("sm_{}", architecture);
  if (architecture == 90) return "sm_90a";
  return fmt::format("{}_{}", best / 10 == architecture / 10 ? "sm" : "compute", best);
}

}  // namespace

const char* kernel_prelude() { return embedded::prelude_cu; }

std::string nvrtc_version() {
  int major = 0, minor = 0;
  check(nvrtcVersion(&major, &minor), "nvrtcVersion");
  return fmt::format("{}.{}", major, minor);
}

std::vector<std::string> nvrtc_options(const KernelSource& source, int architecture) {
  std::vector<std::string> options{
      "--gpu-architecture=" + target_of(architecture),
      "--std=c++20",
      "--fmad=false",
      "--device-as-default-execution-space",
      "--minimal",  // leaves out textures and the like: 10 ms a kernel
  };
  options.insert(options.end(), source.options.begin(), source.options.end());
  return options;
}

namespace {

Program compiled(const KernelSource& source, const std::vector<std::string>& options,
                 int architecture) {
  Program program = create_program(source);
  std::vector<const char*> arguments;
  for (const std::string& option : options)
    arguments.push_back(option.c_str());
  const nvrtcResult status =
      nvrtcCompileProgram(program.get(), static_cast<int>(arguments.size()), arguments.data());
  FOREBAY_REQUIRE(status == NVRTC_SUCCESS, device,
                  "kernel `{}` does not compile for sm_{} ({}):\n{}", source.name, architecture,
                  nvrtcGetErrorString(status), log_of(program.get()));
  return program;
}

}  // namespace

std::string compile_kernel(const KernelSource& source, int architecture) {
  const std::vector<std::string> options = nvrtc_options(source, architecture);
  const Program program = compiled(source, options, architecture);
  const bool is_cubin = options.front().find("=sm_") != std::string::npos;
  std::size_t size = 0;
  check((is_cubin ? nvrtcGetCUBINSize : nvrtcGetPTXSize)(program.get(), &size),
        "nvrtcGetCUBINSize");
  std::string code(size, '\0');
  check((is_cubin ? nvrtcGetCUBIN : nvrtcGetPTX)(program.get(), code.data()), "nvrtcGetCUBIN");
  return code;
}

std::string compiler_report(const KernelSource& source, int architecture) {
  std::vector<std::string> options = nvrtc_options(source, architecture);
  options.emplace_back("--ptxas-options=-v");
  return log_of(compiled(source, options, architecture).get());
}

}  // namespace forebay::cuda
