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
       "epoch. On every shard alike."},
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
      {"sampling", "map", "{mode: once}", "How often each sample comes in an epoch."},
      {"subset", "list of integers, or path", "every sample",
       "The samples that take part, by index; a .npy file of integers, or a list."},
      {"split", "map", "", "The part of the samples that takes part: train or validation."},
      {"shard", "map, or auto", "{shard_id: 0, num_shards: 1}",
       "Which part of every global batch this process gets; auto is {shard_id: auto, num_shards: "
       "auto}."},
      {"checks", "map of column to map", "",
       "What the values of a column must be in the source; a sample that breaks it is bad."},
      {"on_error", "map, or fail, skip or replace", "{mode: fail}",
       "What a bad sample gives: one that cannot be read or breaks a check."},
      {"stages", "list of maps", "[]", "What is done to a batch, in order."},
      {"output", "field or list of fields", "every field", "The fields of a batch, in order."},
  };
  return keys;
}

std::span<const Key> source_keys() {
  static const std::vector<Key> keys = {
      {"type",
       "npy or concat",
       "",
       "The kind of storage; concat puts several sources one after another.",
       {},
       true},
      {"columns", "map of field to path", "",
       "Type npy: the .npy file of each field; axis 0 runs over the samples. Paths are relative to "
       "the YAML file."},
      {"sources",
       "list of maps",
       "",
       "Type concat: the sources, which have the same fields. `sampling: {mode: mix}` draws from "
       "them in proportions.",
       {"datasets", "streams"}},
      {"source_field", "name", "",
       "Type concat: the name of one more field, which tells each sample's source by its number in "
       "the list, from 0."},
  };
  return keys;
}

std::span<const Key> part_keys() {
  static const std::vector<Key> keys = {
      {"name", "text", "", "What the source is called in `proportions` and messages.", {}, true},
      {"type", "npy", "", "The kind of storage.", {}, true},
      {"columns", "map of field to path", "", "As `source.columns`.", {}, true},
  };
  return keys;
}

std::span<const Key> shuffle_keys() {
  static const std::vector<Key> keys = {
      {"mode", "none, full or window", "none",
       "full permutes all samples anew in each epoch, from the seed alone; window only those near "
       "each other."},
      {"window",
       "integer, at least 1",
       "",
       "Mode window: no sample moves further than so many positions.",
       {"buffer_size", "initial_fill"}},
  };
  return keys;
}

std::span<const Key> sampling_keys() {
  static const std::vector<Key> keys = {
      {"mode", "once, replacement, weighted or mix", "once",
       "Each sample once; drawn with replacement from all alike; drawn by weight; or drawn from "
       "the sources of a concat in proportions."},
      {"samples",
       "integer, at least 1, or first_exhausted or all_exhausted",
       "as many as there are",
       "Samples of an epoch when they are drawn. Mode mix: or until a source would begin again, or "
       "until every source has been gone through.",
       {"num_samples", "epoch_size", "stopping_strategy"}},
      {"proportions",
       "map of source to number, at least 0",
       "",
       "Mode mix: the share of each source, by its name; they need no sum of 1.",
       {"probabilities"}},
      {"weights", "path", "",
       "Mode weighted: a .npy file with a weight of at least 0 for each sample of the source; they "
       "need no sum of 1."},
  };
  return keys;
}

std::span<const Key> split_keys() {
  static const std::vector<Key> keys = {
      {"part", "train or validation", "", "The part of this pipeline.", {}, true},
      {"validation",
       "number, above 0 and below 1",
       "",
       "The share of the validation part.",
       {},
       true},
      {"by", "name of a column", "",
       "All samples with the same value in this column are in one part; without it the parts have "
       "their share exactly, rounded."},
      {"seed", "integer, at least 0", "0",
       "Which samples are in which part; not the pipeline's, so that the parts of all runs fit."},
  };
  return keys;
}

std::span<const Key> shard_keys() {
  static const std::vector<Key> keys = {
      {"shard_id",
       "integer, at least 0, or auto",
       "auto",
       "The part of this process, from 0; auto is the environment's RANK.",
       {"rank"}},
      {"num_shards",
       "integer, at least 1, or auto",
       "auto",
       "How many parts there are; auto is the environment's WORLD_SIZE.",
       {"num_replicas", "world_size"}},
  };
  return keys;
}

std::span<const Key> check_keys() {
  static const std::vector<Key> keys = {
      {"finite", "true or false", "false", "No NaN and no infinity."},
      {"min", "number", "", "The least value; NaN breaks it."},
      {"max", "number", "", "The greatest value; NaN breaks it."},
  };
  return keys;
}

std::span<const Key> on_error_keys() {
  static const std::vector<Key> keys = {
      {"mode",
       "fail, skip or replace",
       "",
       "The run ends; the row is not among the real ones; or another sample, drawn by seed, epoch "
       "and position, has the row.",
       {},
       true},
      {"max_count", "integer, at least 0", "",
       "More bad samples in one epoch of one process end the run."},
      {"max_share", "number, 0 to 1", "0.1 without max_count",
       "The same, as a share of the samples."},
      {"quarantine", "path", "",
       "A file that bad samples are added to, each once, as JSON lines of source, index and "
       "reason."},
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

std::vector<Section> sections() {
  return {{"", pipeline_keys()},
          {"source.", source_keys()},
          {"source.sources.", part_keys()},
          {"shuffle.", shuffle_keys()},
          {"sampling.", sampling_keys()},
          {"split.", split_keys()},
          {"shard.", shard_keys()},
          {"checks.COLUMN.", check_keys()},
          {"on_error.", on_error_keys()},
          {"stages.", stage_keys()}};
}

}  // namespace forebay::config
