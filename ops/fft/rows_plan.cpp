#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>
#include <span>

#include <forebay/ops/fft/rows.h>

// How a row is cut. Every way with radices of up to 32 is priced in instructions for each point and
// thread; the weights are of an H200, and only decide between ways.
namespace forebay::dft {
namespace {

constexpr int kMostRadix = 32, kMostPasses = 4;
constexpr int kMostThreads = 256;          // of a row
constexpr int kThreadsOfBlock = 128;       // aimed at
constexpr std::size_t kShared = 48 << 10;  // of a block, without asking for more

std::size_t point_bytes(const Transform& t) { return size_of(complex_of(t.real)); }
/// Points that a thread holds at most: 64 registers of 32 bits.
int most_elements(const Transform& t) { return t.real == Dtype::f64 ? 16 : 32; }
std::int64_t most_length(const Transform& t) { return t.real == Dtype::f64 ? 2048 : 4096; }

bool is_halved(const Transform& t) { return t.engine != Engine::c2c && t.points % 2 == 0; }
std::int64_t length_of(const Transform& t) { return is_halved(t) ? t.points / 2 : t.points; }

template <class T>
T ceil_div(T a, T b) {
  return (a + b - 1) / b;
}

/// Instructions of a transform of `radix` points in registers, for each point.
double radix_cost(int radix) {
  double cost = 0;
  int levels = 0;
  for (; radix % 4 == 0; radix /= 4, ++levels)
    cost += 4;
  for (const auto& [factor, price] : {std::pair{2, 2.0}, {3, 4.0}, {5, 7.0}, {7, 10.0}}) {
    for (; radix % factor == 0; radix /= factor, ++levels)
      cost += price;
  }
  return cost + 1.5 * std::max(levels - 1, 0);
}

std::vector<RowPass> passes_of(const Transform& t, const std::vector<int>& radices, int threads,
                               bool pairs) {
  std::vector<RowPass> passes;
  int before = 1;
  for (const int radix : radices) {
    RowPass pass{.radix = radix, .before = before};
    pass.lines = static_cast<int>(length_of(t)) / radix;
    before *= radix;
    pass.pairs = pairs && passes.size() + 1 == radices.size();
    pass.each = pass.pairs ? 2 * ceil_div(pass.lines / 2, threads) : ceil_div(pass.lines, threads);
    passes.push_back(pass);
  }
  return passes;
}

/// Twiddles of a pass, for each point: one multiplication, and one load where they are not those
/// of another line.
double twiddle_cost(const RowPass& pass, int threads) {
  const double share = pass.before % threads == 0 || pass.pairs ? 1 : 1.0 / pass.each;
  return pass.before == 1 ? 0 : (4 + 2 * share) * (pass.radix - 1) / pass.radix;
}

constexpr double kExchange = 8, kRead = 10, kWrite = 20, kSplit = 6;

double cost_of(const Transform& t, const RowsPlan& plan) {
  const auto slots = [&](const RowPass& pass) {
    return static_cast<double>(plan.threads * pass.each * pass.radix);
  };
  const double last = slots(plan.passes.back());
  double cost = slots(plan.passes.front()) * (kRead - kExchange);
  for (const RowPass& pass : plan.passes)
    cost += slots(pass) * (kExchange + radix_cost(pass.radix) + twiddle_cost(pass, plan.threads));
  const bool splits = plan.halves && t.engine == Engine::r2c;
  if (splits && !plan.split_in_registers) {
    const int half = (plan.length + 1) / 2;
    cost += last * kExchange;
    cost += 2.0 * ceil_div(half, plan.threads) * plan.threads * (kWrite + kSplit);
  } else {
    cost += last * (kWrite + (splits ? kSplit : 0));
  }
  // Registers: beyond half of what a thread may hold, too few warps are left to hide what
  // each waits for.
  cost *= 1 + 0.4 * std::max(0.0, 2.0 * plan.elements() / most_elements(t) - 1);
  // Memory: a row's threads should read whole lines of it, side by side.
  cost *= 1 + 0.06 * std::max(0, 12 - plan.threads);
  if (plan.threads * point_bytes(t) < 32) cost *= 1.5;
  // A row within a warp waits for no other.
  return 32 % plan.threads == 0 ? cost : cost * 1.03;
}

/// Calls `use` with every list of radices whose product is `length`.
template <class F>
void each_factorisation(int length, int most, std::vector<int>& radices, const F& use) {
  if (length == 1 && !radices.empty()) {
    use();
    return;
  }
  if (static_cast<int>(radices.size()) == kMostPasses) return;
  for (int radix = length == 1 ? 1 : 2; radix <= std::min(length, most); ++radix) {
    if (length % radix != 0) continue;
    radices.push_back(radix);
    each_factorisation(length / radix, most, radices, use);
    radices.pop_back();
  }
}

RowsPlan cheapest(const Transform& t) {
  RowsPlan best;
  double best_cost = 0;
  std::vector<int> radices;
  const int most = std::min(kMostRadix, most_elements(t));
  const auto consider = [&](int threads, bool in_registers) {
    RowsPlan plan;
    plan.length = static_cast<int>(length_of(t));
    plan.halves = is_halved(t);
    plan.split_in_registers = in_registers;
    plan.threads = threads;
    plan.passes = passes_of(t, radices, threads, in_registers);
    if (plan.elements() > most_elements(t)) return;
    const double cost = cost_of(t, plan);
    if (!best.passes.empty() && cost >= best_cost) return;
    best = std::move(plan);
    best_cost = cost;
  };
  each_factorisation(static_cast<int>(length_of(t)), most, radices, [&] {
    const int lines = static_cast<int>(length_of(t)) / radices.back();
    const bool may_split =
        is_halved(t) && t.engine == Engine::r2c && radices.back() % 2 == 0 && lines % 2 == 0;
    // Threads that divide the lines of the first or the last pass evenly, as far as that goes.
    std::set<int> threads;
    for (const int count : {static_cast<int>(length_of(t)) / radices.front(), lines, lines / 2}) {
      for (int each = 1; each <= std::min(count, most); ++each)
        threads.insert(ceil_div(count, each));
    }
    for (const int count : threads) {
      if (count > kMostThreads) break;
      consider(count, false);
      if (may_split) consider(count, true);
    }
  });
  return best;
}

// ---- Bank conflicts.

/// How many times shared memory is accessed for a warp's `places`, -1 where a lane has none: an
/// access serves 128 bytes, of different banks.
int accesses(std::span<const int> places, int lanes) {
  int total = 0;
  while (!places.empty()) {
    const auto group = places.first(std::min(places.size(), static_cast<std::size_t>(lanes)));
    places = places.subspan(group.size());
    std::array<int, 32> banks{};
    for (auto place = group.begin(); place != group.end(); ++place) {
      if (*place < 0 || std::find(group.begin(), place, *place) != place) continue;
      ++banks[static_cast<std::size_t>(*place % lanes)];
    }
    total += *std::max_element(banks.begin(), banks.end());
  }
  return total;
}

/// Accesses of the first warps of a block for one element in the middle of every line.
int accesses_of(const RowsPlan& plan, std::size_t exchange, const Padding& padding, int row_words,
                int lanes) {
  const RowPass& from = plan.passes[exchange];
  const RowPass& to = plan.passes[exchange + 1];
  int total = 0;
  const auto warps = [&](const RowPass& pass, auto place_of) {
    for (int first = 0; first < std::min(plan.threads * plan.rows, 96); first += 32) {
      for (int b = 0; b < pass.each; ++b) {
        std::array<int, 32> places{};
        for (int lane = 0; lane < 32; ++lane) {
          const int i = first + lane, j = pass.line(i % plan.threads, b, plan.threads);
          const bool none = i >= plan.threads * plan.rows || j >= pass.lines;
          places[static_cast<std::size_t>(lane)] =
              none ? -1 : i / plan.threads * row_words + padding.place(place_of(j));
        }
        total += accesses(places, lanes) * pass.radix;
      }
    }
  };
  warps(from, [&](int j) {
    return j / from.before * from.before * from.radix + j % from.before +
           from.radix / 2 * from.before;
  });
  warps(to, [&](int j) { return j + to.radix / 2 * to.lines; });
  return total;
}

/// Whether the kernel finds the places of a line without a division for each.
bool is_regular(const RowsPlan& plan, std::size_t exchange, const Padding& padding) {
  const RowPass& from = plan.passes[exchange];
  const int block = from.before * from.radix;
  return padding.gap == 0 || ((padding.every % block == 0 || from.before % padding.every == 0) &&
                              plan.passes[exchange + 1].lines % padding.every == 0);
}

std::vector<Padding> paddings_of(const RowsPlan& plan, std::size_t exchange, int lanes) {
  std::vector<Padding> all{{}};
  const RowPass& from = plan.passes[exchange];
  for (const int every :
       std::set{from.before * from.radix, lanes, plan.passes[exchange + 1].lines}) {
    for (int gap = 1; gap <= lanes && every < plan.length; ++gap) {
      if (is_regular(plan, exchange, {every, gap})) all.push_back({every, gap});
    }
  }
  return all;
}

/// Chooses the paddings and row_words that cost fewest accesses; of equal ones the smallest. Rows
/// matter to each other by what row_words leaves modulo the banks.
void pad(const Transform& t, RowsPlan& plan) {
  const int lanes = static_cast<int>(128 / point_bytes(t));
  int fewest = std::numeric_limits<int>::max();
  const RowsPlan unpadded = plan;
  for (int rest = 0; rest < lanes; ++rest) {
    int total = 0, words = plan.length;
    std::vector<Padding> chosen;
    for (std::size_t i = 0; i + 1 < unpadded.passes.size(); ++i) {
      int least = std::numeric_limits<int>::max();
      for (const Padding& padding : paddings_of(unpadded, i, lanes)) {
        const int count = accesses_of(unpadded, i, padding, lanes * plan.length * 2 + rest, lanes);
        if (count >= least) continue;
        least = count;
        chosen.resize(i);
        chosen.push_back(padding);
      }
      total += least;
      words = std::max(words, chosen.back().place(plan.length - 1) + 1);
    }
    if (total >= fewest) continue;
    fewest = total;
    plan.exchanges = chosen;
    plan.row_words = words + (rest - words % lanes + lanes) % lanes;
  }
}

/// Of a block: for exchanges and, after those, for what is written together.
std::size_t shared_bytes(const Transform& t, const RowsPlan& plan, std::size_t stored_bytes) {
  const std::size_t words = static_cast<std::size_t>(plan.row_words) * point_bytes(t);
  const std::size_t written =
      plan.together ? static_cast<std::size_t>(t.extent_out) * stored_bytes : 0;
  return static_cast<std::size_t>(plan.rows) * std::max(words, written);
}

/// Rows for about kThreadsOfBlock threads, in as full warps as can be.
int rows_of_block(const Transform& t, RowsPlan plan, std::size_t stored_bytes) {
  int best = 1;
  double best_score = 0;
  plan.row_words = plan.length + plan.length / 8 + 16;  // about: padding comes later
  for (plan.rows = 1; plan.rows * plan.threads <= 2 * kThreadsOfBlock; ++plan.rows) {
    if (plan.rows > 1 && shared_bytes(t, plan, stored_bytes) > kShared) break;
    const int threads = plan.rows * plan.threads;
    const double full = static_cast<double>(threads) / (ceil_div(threads, 32) * 32);
    const double size = std::min(1.0, static_cast<double>(threads) / kThreadsOfBlock) -
                        0.05 * std::max(0, threads - kThreadsOfBlock) / kThreadsOfBlock;
    if (full * size <= best_score) continue;
    best_score = full * size;
    best = plan.rows;
  }
  return best;
}

/// Whether what a warp writes would lie in short pieces.
bool writes_together(const Transform& t, const RowsPlan& plan) {
  const bool in_shared = plan.halves && t.engine == Engine::r2c && !plan.split_in_registers;
  return !in_shared && plan.threads < 32 && (plan.threads < 16 || 32 % plan.threads != 0);
}

}  // namespace

int RowPass::line(int t, int b, int threads) const {
  if (!pairs) return t + threads * b;
  const int j = t + threads * (b / 2);
  if (j >= lines / 2) return lines;
  return b % 2 == 0 ? j : j == 0 ? lines / 2 : lines - j;
}

int RowsPlan::elements() const {
  int most = 0;
  for (const RowPass& pass : passes)
    most = std::max(most, pass.radix * pass.each);
  return most;
}

bool rows_fit(const Transform& t) {
  if (t.inner != 1 || length_of(t) > most_length(t)) return false;
  std::int64_t rest = length_of(t);
  for (const std::int64_t factor : {2, 3, 5, 7}) {
    while (rest % factor == 0)
      rest /= factor;
  }
  return rest == 1;
}

RowsPlan plan_rows(const Transform& t, std::size_t stored_bytes) {
  RowsPlan plan = cheapest(t);
  plan.together = writes_together(t, plan);
  plan.rows = rows_of_block(t, plan, stored_bytes);
  pad(t, plan);
  while (plan.rows > 1 && shared_bytes(t, plan, stored_bytes) > kShared)
    --plan.rows;
  return plan;
}

}  // namespace forebay::dft
