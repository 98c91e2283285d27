// How the threads of a team go over the elements of a slice. slices.cu and histogram_search.cu come
// before this. Options:
//   BLOCK    threads of a block
//   TEAM     threads that have one unit together: BLOCK, or 8, 16 or 32 for short slices
//   COLUMNS  1: slices lie beside each other in memory (Part), else they are runs of neighbours
//   RUNS     1: several runs a slice
//   INDEX    i32, or i64 for arrays of 2^31 elements and more
//   DEPTH    packs of elements that a thread loads at once

/// visit(pack) for packs first .. first + packs.
template <int N, class Visit>
void for_packs(const LoadX& x, INDEX first, INDEX packs, u32 part, u32 parts, u32 thread,
               Visit&& visit) {
  INDEX p = INDEX(part) * (DEPTH * TEAM) + thread;
#pragma unroll 1
  for (; p + (DEPTH - 1) * TEAM < packs; p += INDEX(parts) * (DEPTH * TEAM)) {
    Pack<Value, N> values[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
      values[k] = x.template pack<N>(first + p + k * TEAM);
#pragma unroll
    for (const auto& each : values)
      visit(each);
  }
  if (p < packs) {  // the last, not whole
    Pack<Value, N> values[DEPTH];
#pragma unroll
    for (int k = 0; k < DEPTH; ++k)
      values[k] = x.template pack<N>(first + min(p + k * TEAM, packs - 1));
#pragma unroll
    for (int k = 0; k < DEPTH; ++k) {
      if (p + k * TEAM < packs) visit(values[k]);
    }
  }
}

/// visit(pack) for part `part` of `parts` of elements begin .. end of the whole, by the team's
/// `thread`: packs at whole multiples of their size, DEPTH at once, those of the parts in turn, so
/// that all read neighbouring memory at a time.
template <class Visit>
void for_run(const LoadX& x, INDEX begin, INDEX end, u32 part, u32 parts, u32 thread,
             Visit&& visit) {
  constexpr int N = 16 / sizeof(Value);
  const INDEX first = min((begin + (N - 1)) / N, end / N), packs = end / N - first;
  // Elements before and behind the packs; with no packs, all of them.
  const u32 head = packs > 0 ? first * N - begin : end - begin,
            others = packs > 0 ? head + end % N : head;
  const auto other = [&](u32 i) {
    return x.at(i < head ? begin + INDEX(i) : end - INDEX(others - i));
  };
  u32 i = part * TEAM + thread;
  Value value{};
  if (i < others) value = other(i);
  // Twice the same, so that whether an access may have a whole pack is asked once, not at each.
  LoadX from = x;
  if ((N & -N) <= x.whole) {
    from.whole = N;
    for_packs<N>(from, first, packs, part, parts, thread, visit);
  } else {
    from.whole = 0;
    for_packs<N>(from, first, packs, part, parts, thread, visit);
  }
#pragma unroll 1
  for (; i < others; i += parts * TEAM, value = i < others ? other(i) : value)
    visit(Pack<Value, 1>{{value}});
}

/// Part `part` of `parts` of a slice whose group lies at `start`.
template <class Visit>
void for_slice(const LoadX& x, const Slices& s, i64 start, u32 part, u32 parts, u32 thread,
               Visit&& visit) {
#if RUNS
  const bool whole = s.outer >= parts;  // then a part takes whole runs
#pragma unroll 1
  for (i64 outside = whole ? part : 0; outside < s.outer; outside += whole ? parts : 1) {
    const INDEX begin = start + offset_of(outside, s.reduced, s.reduced_count);
    for_run(x, begin, begin + INDEX(s.rows), whole ? 0 : part, whole ? 1 : parts, thread, visit);
  }
#else
  for_run(x, INDEX(start), INDEX(start + s.rows), part, parts, thread, visit);
#endif
}

/// The same for columns of slices.
template <class Visit>
void for_columns(const LoadX& x, const Slices& s, const Part& p, Visit&& visit) {
  if (!p.active) return;
  Cursor cursor = p.cursor(s);
  for (i64 position = p.first + p.lane; position < p.last; position += p.lanes, cursor.advance(s)) {
    visit(Pack<Value, 1>{{x.at(p.offset + cursor.offset(s))}});
  }
}
