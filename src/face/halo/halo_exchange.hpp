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
  Status start();
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
    arrived     // unpack
  };
  // Fields of one kind of memory on one device, which share buffers.
  struct Share {
    std::vector<std::size_t> fields;
    Piece beside;  // a field's memory
    std::vector<Laid> out;
    std::vector<Laid> in;
    std::vector<Lane> lanes;
    ist_halo_packing packing = IST_HALO_CALLS;
    std::string measured;
    std::unique_ptr<Way> way;
    bool in_streams = false;  // its channels are prepared
  };
  // The fields' buffers of one time, and what packs them: those of the last few are kept.
  struct Binding {
    std::vector<ist_buffer> buffers;
    std::vector<Placed> fields;
    std::vector<Packer> packs;    // by share
    std::vector<Packer> unpacks;  // by share
    bool in_streams = false;      // what packs in streams is prepared
  };
  Exchange(World& world, std::unique_ptr<OwnComm> comm, SharedGrid grid)
      : world_(world), comm_(std::move(comm)), grid_(std::move(grid)) {}

  std::size_t dimensions() const { return grid_ != nullptr ? grid_->dimensions : 0; }
  Status read(int count, const ist_halo_field* fields, std::vector<Field>& into) const;
  Status read(const ist_halo_options* options);
  Status set_up(const ist_halo_lists* lists);
  Status prepare(const ist_halo_lists* lists, int count, const ist_halo_field* fields, const ist_halo_options* options);
  Status place(std::vector<Placed>& placed) const;
  Status group(const std::vector<Placed>& placed);
  Status make_shares();
  void lay_out(Share& share) const;
  Status rebuild();
  // Makes the fields' buffers the ones that are packed.
  Status bind();
  Status check_kinds(const Binding& binding) const;
  Status make_tasks(Binding& binding);
  Status measure(Share& share, const Binding& binding);
  Status can_be_in_streams() const;
  Status move_in(const Share& share, std::size_t number, void* stream) const;
  // Where setting fields failed, and going back, too, there are none.
  Status expect_fields() const;
  Status expect(State state, const char* what) const;

  World& world_;
  std::unique_ptr<OwnComm> comm_;
  SharedGrid grid_;  // null: cells are listed
  int rank_ = 0;
  int ranks_ = 1;
  Options options_;
  std::vector<Field> fields_;
  std::vector<int> groups_;  // of each field: which share it is in
  Pattern pattern_;
  std::vector<Share> shares_;
  std::vector<Binding> bindings_;  // the current one is the last
  State state_ = State::idle;
};

}  // namespace ist::halo
