// Commands that read a file without running it: check and plan.
#include <fmt/core.h>

#include <forebay/array/require.h>
#include <forebay/pipeline/cli/bandwidth.h>
#include <forebay/pipeline/cli/commands.h>
#include <forebay/pipeline/cli/kernels.h>
#include <forebay/pipeline/config/config.h>
#include <forebay/pipeline/plan.h>

namespace forebay::cli {

Spec load(const Arguments& arguments, Presence presence, std::optional<std::int64_t> stages,
          Notes wanted) {
  std::optional<Device> device;
  if (arguments.device) device = device_from_name(arguments.device->c_str(), presence);
  std::vector<std::string> notes;
  Spec spec = load_spec(
      arguments.file, {.device = device, .presence = presence, .notes = &notes, .stages = stages});
  for (const std::string& note : notes)
    if (wanted == Notes::printed) fmt::print(stderr, "{}\n", note);
  return spec;
}

int check(const Arguments& arguments) {
  const auto compiled =
      compile(std::make_shared<const Spec>(load(arguments, Presence::not_needed)));
  const Spec& spec = *compiled->spec;
  const Sampler& sampler = *compiled->sampler;
  const int shards = sampler.shard().num_shards;
  fmt::print("{}: no mistakes; {} samples make {} batches of {} an epoch{}, on {}\n",
             arguments.file, sampler.order().length(), sampler.steps_per_epoch(), spec.batch_size,
             shards > 1 ? fmt::format(" on each of {} shards", shards) : "",
             to_string(compiled->device));
  return kOk;
}

int plan(const Arguments& arguments) {
  const auto compiled =
      compile(std::make_shared<const Spec>(load(arguments, Presence::not_needed)));
  fmt::print("{}", to_string(*compiled, copy_bandwidth(compiled->device)));
  if (arguments.dump)
    fmt::print("\n{} kernels written to {}\n", dump_kernels(*compiled, *arguments.dump),
               *arguments.dump);
  return kOk;
}

}  // namespace forebay::cli
