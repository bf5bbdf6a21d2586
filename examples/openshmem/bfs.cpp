// Breadth-first search through a random graph, whose vertices are spread over all PEs, with every tree checked: bfs [LOG2_OF_VERTICES]
//
// As in Graph500: a Kronecker graph of 8 edges per vertex, searched from several roots. A vertex's parent is set by the first PE
// that can, with an atomic compare and swap, which then puts it into the queue of the PE that has it.
#include <cstdint>
#include <vector>

#include "verdict.h"

namespace {

constexpr long kEdgesPerVertex = 8;
constexpr int kRoots = 4;
constexpr long kNone = -1;

// How much is in this PE's queue for the next level, and how many edges it has been sent; of all PEs, how many vertices a level has.
long queued;
long edges_here;
long in_level[2];
// What was sent less what came; zero if every edge arrived as it was.
unsigned long unlike;

struct Edge {
  long from, to;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 1) {}
  std::uint64_t next() {
    state_ ^= state_ << 13U;
    state_ ^= state_ >> 7U;
    state_ ^= state_ << 17U;
    return state_ * 0x2545f4914f6cdd1dU;
  }
  double uniform() { return static_cast<double>(next() >> 11U) / 9007199254740992.0; }

 private:
  std::uint64_t state_;
};

unsigned long mixed(const Edge& edge) {
  const auto one = static_cast<unsigned long>(edge.from) * 0x9e3779b97f4a7c15U + static_cast<unsigned long>(edge.to) + 1;
  return (one ^ (one >> 29U)) * 0xbf58476d1ce4e5b9U;
}

// Which quadrant of the adjacency matrix an edge is in, again and again.
Edge kronecker_edge(Random& random, int log2) {
  Edge edge{0, 0};
  for (int bit = 0; bit < log2; ++bit) {
    const double where = random.uniform();
    const bool down = where > 0.76;
    const bool right = down ? where > 0.95 : where > 0.57;
    edge.from = 2 * edge.from + (down ? 1 : 0);
    edge.to = 2 * edge.to + (right ? 1 : 0);
  }
  // Neighbours in number would be on one PE: an odd factor mixes them.
  const auto spread = [log2](long vertex) {
    return static_cast<long>(static_cast<std::uint64_t>(vertex) * 2654435761U & ((std::uint64_t{1} << log2) - 1));
  };
  return {spread(edge.from), spread(edge.to)};
}

class Graph {
 public:
  explicit Graph(int log2)
      : me_(shmem_my_pe()), pes_(shmem_n_pes()), vertices_(1L << log2), each_((vertices_ + pes_ - 1) / pes_) {
    const long room = 4 * kEdgesPerVertex * vertices_ / pes_ + 20 * kEdgesPerVertex * each_ + 1024;
    Edge* const inbox = allocate<Edge>(room);
    Random random{static_cast<std::uint64_t>(me_) + 17};
    for (long i = me_; i < kEdgesPerVertex * vertices_; i += pes_) {
      const Edge edge = kronecker_edge(random, log2);
      send(inbox, room, edge);
      send(inbox, room, {edge.to, edge.from});
    }
    shmem_barrier_all();
    unsigned long came = 0;
    for (long i = 0; i < edges_here; ++i) came += mixed(inbox[i]);
    shmem_ulong_atomic_add(&unlike, sent_ - came, 0);
    begin_.assign(static_cast<std::size_t>(each_) + 1, 0);
    for (long i = 0; i < edges_here; ++i) ++begin_[local(inbox[i].from) + 1];
    for (std::size_t v = 1; v < begin_.size(); ++v) begin_[v] += begin_[v - 1];
    std::vector<long> place{begin_.begin(), begin_.end() - 1};
    neighbours_.resize(static_cast<std::size_t>(edges_here));
    for (long i = 0; i < edges_here; ++i) neighbours_[static_cast<std::size_t>(place[local(inbox[i].from)]++)] = inbox[i].to;
    shmem_free(inbox);
    parent_ = allocate<long>(each_);
    level_ = allocate<long>(each_);
    queue_ = allocate<long>(each_);
  }
  ~Graph() {
    shmem_free(queue_);
    shmem_free(level_);
    shmem_free(parent_);
  }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  long vertices() const { return vertices_; }
  // The edges that were looked at.
  long search(long root);
  int validate(long root) const;

 private:
  template <class T>
  static T* allocate(long count) {
    auto* const made = static_cast<T*>(shmem_malloc(static_cast<std::size_t>(count) * sizeof(T)));
    if (made == nullptr) {
      std::fprintf(stderr, "bfs: no memory for %ld elements\n", count);
      shmem_global_exit(1);
    }
    return made;
  }
  void send(Edge* inbox, long room, const Edge& edge) {
    sent_ += mixed(edge);
    const long at = shmem_long_atomic_fetch_inc(&edges_here, owner(edge.from));
    if (at >= room) {
      std::fprintf(stderr, "bfs: PE %d has no room for more than %ld edges\n", owner(edge.from), room);
      shmem_global_exit(1);
    }
    shmem_putmem(inbox + at, &edge, sizeof edge, owner(edge.from));
  }
  int owner(long vertex) const { return static_cast<int>(vertex / each_); }
  std::size_t local(long vertex) const { return static_cast<std::size_t>(vertex % each_); }
  // Those of one of this PE's own vertices.
  template <class Each>
  void for_neighbours(std::size_t vertex, const Each& each) const {
    for (long i = begin_[vertex]; i < begin_[vertex + 1]; ++i) each(neighbours_[static_cast<std::size_t>(i)]);
  }
  bool is_edge(std::size_t vertex, long to) const {
    bool found = false;
    for_neighbours(vertex, [&](long neighbour) { found = found || neighbour == to; });
    return found;
  }

  int me_, pes_;
  long vertices_, each_;
  unsigned long sent_ = 0;
  std::vector<long> begin_, neighbours_;
  long *parent_, *level_, *queue_;
};

long Graph::search(long root) {
  for (long v = 0; v < each_; ++v) parent_[v] = level_[v] = kNone;
  queued = 0;
  std::vector<long> frontier;
  if (owner(root) == me_) {
    frontier.push_back(root);
    parent_[local(root)] = root;
  }
  long edges = 0;
  shmem_barrier_all();
  for (long level = 0;; ++level) {
    for (const long vertex : frontier) {
      level_[local(vertex)] = level;
      for_neighbours(local(vertex), [&](long neighbour) {
        ++edges;
        const int pe = owner(neighbour);
        if (shmem_long_atomic_compare_swap(&parent_[local(neighbour)], kNone, vertex, pe) != kNone) return;
        shmem_long_p(&queue_[shmem_long_atomic_fetch_inc(&queued, pe)], neighbour, pe);
      });
    }
    // All have put what they found, and then all have said how much they were given: the counter of the next level is free by then.
    shmem_barrier_all();
    frontier.assign(queue_, queue_ + queued);
    for (int pe = 0; pe < pes_; ++pe) shmem_long_atomic_add(&in_level[level % 2], queued, pe);
    shmem_barrier_all();
    const bool over = in_level[level % 2] == 0;
    in_level[level % 2] = 0;
    queued = 0;
    shmem_barrier_all();
    if (over) return edges;
  }
}

// Every vertex that was reached has a parent one level above it, by an edge that there is, and every edge joins vertices of which
// both were reached, at most one level apart, or neither.
int Graph::validate(long root) const {
  int wrong = 0;
  for (long v = 0; v < each_; ++v) {
    const long vertex = me_ * each_ + v;
    const auto at = static_cast<std::size_t>(v);
    const long parent = parent_[v];
    if (vertex == root) {
      wrong += parent != root || level_[v] != 0;
    } else if (parent != kNone) {
      wrong += !is_edge(at, parent) || shmem_long_g(&level_[local(parent)], owner(parent)) != level_[v] - 1;
    }
    wrong += (parent == kNone) != (level_[v] == kNone);
    for_neighbours(at, [&](long neighbour) {
      const long other = shmem_long_g(&level_[local(neighbour)], owner(neighbour));
      wrong += (other == kNone) != (level_[v] == kNone) || other > level_[v] + 1 || other < level_[v] - 1;
    });
  }
  shmem_barrier_all();
  return wrong;
}

int search_all(int log2) {
  Graph graph{log2};
  Random random{4711};
  int wrong = shmem_my_pe() == 0 && unlike != 0 ? 1 : 0;
  double time = 0;
  long edges = 0;
  for (int i = 0; i < kRoots; ++i) {
    const long root = static_cast<long>(random.next() % static_cast<std::uint64_t>(graph.vertices()));
    const double start = seconds();
    edges += graph.search(root);
    time += seconds() - start;
    wrong += graph.validate(root);
  }
  if (shmem_my_pe() == 0)
    std::printf("bfs: PE 0 went along %.3f million edges a second\n", 1e-6 * static_cast<double>(edges) / time);
  return verdict("bfs", wrong);
}

}  // namespace

int main(int argc, char** argv) {
  shmem_init();
  const int status = search_all(static_cast<int>(argument(argc, argv, 1, 10)));
  shmem_finalize();
  return status;
}
