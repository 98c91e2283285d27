#include <forebay/pipeline/cli/kernels.h>

#include <cctype>
#include <filesystem>
#include <fstream>

#include <forebay/array/cuda/kernel.h>
#include <forebay/array/require.h>
#include <forebay/ops/expr/execute_devices.h>
#include <forebay/pipeline/mistakes.h>

namespace forebay::cli {
namespace {

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.flush();
  FOREBAY_REQUIRE(file.good(), io, "--dump-kernels: {} cannot be written.", path.string());
}

/// "normalize_clip" of "normalize + clip".
std::string file_part(const std::string& label) {
  std::string part;
  for (const char c : label) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      part += c;
    else if (!part.empty() && part.back() != '_')
      part += '_';
  }
  return part;
}

std::string header(const Plan& plan, const PlanStep& step, std::size_t number,
                   const cuda::KernelSource& source) {
  std::string text = fmt::format("// {}, step {}: {}\n", plan.spec->name, number, step.label);
  for (const int stage : step.stages)
    text += fmt::format("//   {}\n", stage_title(*plan.spec, stage));
  std::string options;
  for (const std::string& option : source.options)
    options += " " + option;
  text += fmt::format("// kernel `{}`; prelude.cu comes before it; options:{}\n\n", source.name,
                      options.empty() ? " none" : options);
  return text;
}

}  // namespace

int dump_kernels(const Plan& plan, const std::string& folder) {
  FOREBAY_REQUIRE(
      plan.device.is_cuda(), unsupported,
      "--dump-kernels: the pipeline runs on {}; kernels are for CUDA. Add --device cuda.",
      to_string(plan.device));
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  FOREBAY_REQUIRE(!error, io, "--dump-kernels: {} cannot be made: {}.", folder, error.message());
  write(std::filesystem::path(folder) / "prelude.cu", cuda::kernel_prelude());

  // Preparing loads kernels and asks nothing else of CUDA, so a context of the CPU will do.
  const Context context{Stream::create(Device::cpu(), 1), host_memory(), host_memory()};
  int written = 0;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (!step.device.is_cuda()) continue;
    const cuda::CompileOnly look({});
    std::unique_ptr<Body> body;
    if (step.kind == PlanStep::Kind::pointwise) body = expr::prepare_cuda(step.program, context);
    if (step.kind == PlanStep::Kind::kernel) {
      const Op& op = plan.spec->stages[static_cast<std::size_t>(step.kernel_stage)].op;
      body = op.entry().cuda(op, step.problem, context);
    }
    int k = 0;
    for (const cuda::KernelSource& source : look.sources()) {
      const std::string name =
          fmt::format("{:02}_{}_{}_{}.cu", i + 1, file_part(step.label), k++, source.name);
      write(std::filesystem::path(folder) / name, header(plan, step, i + 1, source) + source.text);
      ++written;
    }
  }
  return written;
}

}  // namespace forebay::cli
