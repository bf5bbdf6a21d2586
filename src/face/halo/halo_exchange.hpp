// One exchange: its fields, what goes to whom, the buffers between, and how far it has come.
//
// Who calls this : api_halo.cpp.
// Threads        : one at a time.
// Ownership      : owns a communicator of its own, buffers and messages; shares its grid. close() gives everything back, while the world
//                  is there.
// Errors         : of create(): the same at all ranks, with the one that saw it. Otherwise returned as messages' and packings' are.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "face/halo/halo_packing.hpp"
#include "face/halo/halo_way.hpp"

namespace ist::halo {

struct Options {
  int reach = 0;
  ist_halo_packing packing = IST_HALO_AUTO;
  ist_halo_way way = IST_HALO_MESSAGES;
};

struct Field {
  ist_buffer buffer{};
  Shape shape;
};

class Exchange {
 public:
  // Collective; `grid` may be null, and then there are lists.
  static Result<std::unique_ptr<Exchange>> create(ist_comm comm, SharedGrid grid, const ist_halo_lists* lists, int count,
                                                  const ist_halo_field* fields, const ist_halo_options* options);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  Status set_fields(int count, const ist_halo_field* fields);
  Status pack();
  // Where it fails all that had begun is over; what could not be taken back ends the exchange for good.
  Status start();
  // Is what start() began over? Then it was waited for, too.
  Status test(bool& over);
  Status wait();
  Status unpack();
  // halo_streams.cpp
  Status prepare_on(void* stream);
  Status exchange_on(void* stream);
  // The last call on it, if its world is still there.
  Status close();
  std::string text() const;
  ist_comm comm() const { return comm_->get(); }

 private:
  enum class State : std::uint8_t {
    idle,       // pack is next
    packed,     // start or pack
    under_way,  // wait
    arrived,    // unpack
    broken      // free alone: a start failed, and neighbours had some of it
  };
  // Fields of one kind of memory on one device, which share buffers.
  struct Share {
    std::vector<std::size_t> fields;
    Piece beside;  // a field's memory
    Lanes lanes;
    bool ahead = false;  // in a stream all that this rank sends may be sent before it receives
    ist_halo_packing packing = IST_HALO_CALLS;
    std::string measured;
    std::unique_ptr<Way> way;
    bool in_streams = false;  // its channels are prepared
  };
  // The fields' buffers of one time, and what packs them. Of those used last a few are kept, and all that graphs may hold.
  struct Binding {
    std::vector<ist_buffer> buffers;
    std::vector<Placed> fields;
    std::vector<Packer> packs;    // by share
    std::vector<Packer> unpacks;  // by share
    bool in_streams = false;      // what packs in streams is prepared
    bool captured = false;        // a graph may hold lists of runs, which go with the binding
    bool has_lists() const;
  };
  // What is exchanged. Other shapes are a plan of their own, which takes this one's place when all of it is there.
  struct Plan {
    std::vector<Field> fields;
    std::vector<Placed> placed;  // the fields when it was made
    std::vector<int> groups;     // of each field: which share it is in
    Pattern pattern;
    std::vector<std::int64_t> bytes;  // of each field, from its beginning on
    std::vector<Share> shares;
    std::vector<Binding> bindings;  // the one that was used last is the last, and the current one
  };
  // What was measured of memory of one kind on one device.
  struct Measured {
    KindId kind;
    int device;
    Choice choice;
  };
  Exchange(World& world, std::unique_ptr<OwnComm> comm, SharedGrid grid)
      : world_(world), comm_(std::move(comm)), grid_(std::move(grid)) {}

  std::size_t dimensions() const { return grid_ != nullptr ? grid_->dimensions : 0; }
  Status read(int count, const ist_halo_field* fields, std::vector<Field>& into) const;
  Status read(const ist_halo_options* options);
  Status set_up(Plan& plan, const ist_halo_lists* lists) const;
  Status prepare(const ist_halo_lists* lists, int count, const ist_halo_field* fields, const ist_halo_options* options);
  Status compare() const;
  Status find_bytes(Plan& plan) const;
  static Status check_elements(const Plan& plan);
  Status place(const Plan& plan, std::vector<Placed>& placed) const;
  Status group(Plan& plan) const;
  Status make_shares(Plan& plan);
  static Status close(Plan& plan);
  // Makes the fields' buffers the ones that are packed.
  Status bind(Plan& plan);
  Status check_kinds(const Plan& plan, const Binding& binding) const;
  Status make_tasks(const Plan& plan, Binding& binding) const;
  // How the share is packed, where that is to be found out: once for each kind of memory and device.
  Status choose(Share& share, const Binding& binding);
  Result<double> time_of(const Share& share, const Binding& binding, ist_halo_packing packing) const;
  Status can_be_in_streams() const;
  Status move_in(const Share& share, std::size_t number, void* stream) const;
  Status note_capture(Binding& binding, void* stream) const;
  Status expect(State state) const;

  World& world_;
  std::unique_ptr<OwnComm> comm_;
  SharedGrid grid_;  // null: cells are listed
  int rank_ = 0;
  int ranks_ = 1;
  Options options_;
  Plan plan_;
  std::vector<Measured> measured_;
  State state_ = State::idle;
};

}  // namespace ist::halo
