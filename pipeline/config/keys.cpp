#include <forebay/pipeline/config/keys.h>

namespace forebay::config {

std::span<const Key> pipeline_keys() {
  static const std::vector<Key> keys = {
      {"version", "1", "", "The version of this format.", {}, true},
      {"name", "text", "the file's name", "What the pipeline is called in plans and messages."},
      {"batch_size", "integer, at least 1", "", "Samples in a batch.", {}, true},
      {"seed", "integer, at least 0", "0",
       "The root of all randomness: equal seeds give equal batches."},
      {"device", "auto, cpu, cuda or cuda:N", "auto",
       "Where stages run; auto takes the GPU when there is one."},
      {"device_id", "integer, at least 0", "", "Another way to write `device: cuda:N`."},
      {"num_threads",
       "integer, 0 to 4096",
       "0",
       "Threads that read and compute on the host; 0 is one for each core.",
       {"num_workers"}},
      {"prefetch_queue_depth",
       "integer, 1 to 1024",
       "2",
       "Batches that are ready ahead of the training loop.",
       {"prefetch_factor", "prefetch"}},
      {"max_held_batches", "integer, 1 to 65536", "16",
       "Batches that the consumer may hold at once before the next one is refused."},
      {"last_batch_policy", "partial, drop or fill", "partial",
       "A last batch that is not full is delivered small, dropped, or filled from the start of the "
       "epoch."},
      {"drop_last",
       "true or false",
       "",
       "Another way to write `last_batch_policy: drop`.",
       {"drop_remainder"}},
      {"fuse", "true or false", "true",
       "false makes each stage a step of its own, to find out where a difference comes from."},
      {"source", "map", "", "Where samples come from.", {}, true},
      {"shuffle", "map", "{mode: none}",
       "The order of the samples; true is {mode: full}, false {mode: none}."},
      {"stages", "list of maps", "[]", "What is done to a batch, in order."},
      {"output", "field or list of fields", "every field", "The fields of a batch, in order."},
  };
  return keys;
}

std::span<const Key> source_keys() {
  static const std::vector<Key> keys = {
      {"type", "npy", "", "The kind of storage.", {}, true},
      {"columns",
       "map of field to path",
       "",
       "The .npy file of each field; axis 0 runs over the samples. Paths are relative to the YAML "
       "file.",
       {},
       true},
  };
  return keys;
}

std::span<const Key> shuffle_keys() {
  static const std::vector<Key> keys = {
      {"mode", "none or full", "none",
       "full permutes all samples anew in each epoch, from the seed alone."},
  };
  return keys;
}

std::span<const Key> stage_keys() {
  static const std::vector<Key> keys = {
      {"op", "name of an op", "", "What the stage does; `forebay ops` lists them.", {}, true},
      {"inputs",
       "field or list of fields",
       "what the stage before wrote",
       "The fields that it reads.",
       {"input"}},
      {"outputs",
       "field or list of fields",
       "the field it reads",
       "The fields that it writes.",
       {"output"}},
      {"device", "auto, cpu, cuda or cuda:N", "auto",
       "Where it runs; auto is the pipeline's device."},
  };
  return keys;
}

}  // namespace forebay::config
