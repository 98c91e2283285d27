#include <algorithm>
#include <array>
#include <numeric>
#include <set>

#include <forebay/ops/fft/rows.h>

// How a row is cut. Every way with radices of up to 32 is priced in instructions for each point and thread; the
// weights are of an H200, and only decide between ways.
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

constexpr double kExchange = 10, kRead = 24, kWrite = 20, kSplit = 4;

double cost_of(const Transform& t, const RowsPlan& plan) {
  const auto slots = [&](const RowPass& pass) {
    return static_cast<double>(plan.threads * pass.each * pass.radix);
  };
  double cost = slots(plan.passes.front()) * kRead;
  for (const RowPass& pass : plan.passes)
    cost += slots(pass) * (radix_cost(pass.radix) + kExchange);
  cost -= slots(plan.passes.front()) * kExchange;
  const bool splits = plan.halves && t.engine == Engine::r2c;
  if (splits && !plan.split_in_registers) {
    const int half = (plan.length + 1) / 2;
    cost += 2.0 * ceil_div(half, plan.threads) * plan.threads * (kWrite + kSplit);
    cost += slots(plan.passes.back()) * kExchange;
  } else {
    cost += slots(plan.passes.back()) * (kWrite + (splits ? kSplit : 0));
  }
  // Threads of one row side by side should read whole sectors of memory.
  if (plan.threads * point_bytes(t) < 32) cost *= 1.5;
  if (32 % plan.threads != 0) cost *= 1.03;  // waits for the block, not for its warp
  return cost;
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

/// How many times shared memory is accessed for a warp's `places`, -1 where a lane has none: an access serves 128
/// bytes, of different banks.
int accesses(const std::vector<int>& places, int lanes) {
  int total = 0;
  for (std::size_t begin = 0; begin < places.size(); begin += static_cast<std::size_t>(lanes)) {
    std::vector<std::set<int>> banks(static_cast<std::size_t>(lanes));
    std::size_t most = 0;
    for (std::size_t i = begin;
         i < std::min(places.size(), begin + static_cast<std::size_t>(lanes)); ++i) {
      if (places[i] < 0) continue;
      auto& bank = banks[static_cast<std::size_t>(places[i] % lanes)];
      bank.insert(places[i]);
      most = std::max(most, bank.size());
    }
    total += static_cast<int>(most);
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
        std::vector<int> places;
        for (int i = first; i < std::min(first + 32, plan.threads * plan.rows); ++i) {
          const int j = pass.line(i % plan.threads, b, plan.threads);
          places.push_back(
              j < pass.lines ? i / plan.threads * row_words + padding.place(place_of(j)) : -1);
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

/// Chooses row_words and the paddings that cost fewest accesses; of equal ones the smallest.
void pad(const Transform& t, RowsPlan& plan) {
  const int lanes = static_cast<int>(128 / point_bytes(t));
  std::vector<std::vector<Padding>> choices(plan.exchanges.size());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    choices[i].push_back({});
    const RowPass& from = plan.passes[i];
    for (const int every : std::set{from.before * from.radix, lanes, plan.passes[i + 1].lines}) {
      for (int gap = 1; gap <= lanes && every < plan.length; ++gap) {
        if (is_regular(plan, i, {every, gap})) choices[i].push_back({every, gap});
      }
    }
  }
  int fewest = 0;
  for (int extra = 0; extra < 2 * lanes; ++extra) {
    const int words = plan.length + extra;
    int total = 0;
    std::vector<Padding> chosen;
    for (std::size_t i = 0; i < choices.size(); ++i) {
      int least = 0;
      for (const Padding& padding : choices[i]) {
        if (padding.place(plan.length - 1) >= words) continue;
        const int count = accesses_of(plan, i, padding, words, lanes);
        if (chosen.size() > i && count >= least) continue;
        chosen.resize(i);
        chosen.push_back(padding);
        least = count;
      }
      total += least;
    }
    if (extra > 0 && total >= fewest) continue;
    fewest = total;
    plan.row_words = words;
    plan.exchanges = chosen;
  }
}

/// Rows for about kThreadsOfBlock threads, in as full warps as can be.
int rows_of_block(const Transform& t, const RowsPlan& plan) {
  int best = 1;
  double best_score = 0;
  for (int rows = 1; rows * plan.threads <= 2 * kThreadsOfBlock; ++rows) {
    if (static_cast<std::size_t>(rows) * static_cast<std::size_t>(2 * plan.length) *
            point_bytes(t) >
        kShared)
      break;
    const int threads = rows * plan.threads;
    const double full = static_cast<double>(threads) / (ceil_div(threads, 32) * 32);
    const double size = std::min(1.0, static_cast<double>(threads) / kThreadsOfBlock) -
                        0.05 * std::max(0, threads - kThreadsOfBlock) / kThreadsOfBlock;
    if (full * size <= best_score) continue;
    best_score = full * size;
    best = rows;
  }
  return best;
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

RowsPlan plan_rows(const Transform& t) {
  RowsPlan plan = cheapest(t);
  plan.exchanges.resize(plan.passes.size() - 1);
  plan.row_words = plan.length;
  plan.rows = rows_of_block(t, plan);
  pad(t, plan);
  return plan;
}

}  // namespace forebay::dft
