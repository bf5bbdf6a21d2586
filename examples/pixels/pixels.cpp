// cudaMPI's stencil: every pixel of a picture becomes the mean of its four neighbours, but those at its border, which stay. The long side is
// cut over ranks; in each step they compute, and then a row goes to the rank above and one to that below, with nothing that hides them. The
// same by 1, 2, 4 ... ranks of those that are running gives the paper's table. Every bit is compared with that of a loop on the host.
//
// --device host: by plain messages. --device cuda, a GPU for each rank, rows leave from device memory and come into it: by the same messages,
// which the processor waits for, or by ist_sendrecv_on between the kernels of a graph (--exchange stream), so that it waits for the end alone.
// ms of computing are of the same sweeps with nothing between them; the rest of a step is the network, and waiting.
// Run: isthmus run -n 4 pixels
//      isthmus run -n 2 pixels --device cuda --steps 200 --json pixels.json
#include <cstdlib>
#include <optional>

#include "common/json_file.hpp"
#include "common/program.hpp"
#include "common/serial.hpp"
#include "report.hpp"

namespace {

using example::Mistake;
using example::Serial;
using pixels::Line;
using pixels::Machine;
using pixels::Options;

// By the ranks of comm; what rank 0 has to tell.
Line run_ranks(Machine& machine, const isthmus::Comm& comm, const Options& options, const std::string& way,
               const Serial* serial) {
  const auto picture = machine.make(comm, way);
  picture->run(2);  // an exchange of each level, which is not counted
  Line line{way, comm.size(), {}, false};
  line.times = example::median_of_three([&] { return picture->run(options.steps); });
  const int level = options.steps % 2;
  const example::Field found = picture->result(level);
  if (options.spoil == "yes" && comm.rank() == comm.size() - 1) example::spoil(found, level);
  line.right = example::same_bits(comm, found, level, serial);
  return line;
}

std::unique_ptr<Machine> machine_for(const isthmus::World& world, const Options& options) {
  const bool host = options.device == "host";
  const auto& ways = host ? pixels::host_ways() : pixels::cuda_ways();
  if (options.exchange != "all" && std::find(ways.begin(), ways.end(), options.exchange) == ways.end())
    throw Mistake("--exchange " + options.exchange + " is of --device cuda alone");
  return host ? pixels::make_host_machine(world, options) : pixels::make_cuda_machine(world, options);
}

bool work(const isthmus::World& world, const Options& options) {
  const isthmus::Comm comm = world.comm();
  if (options.cut_rows() < comm.size())
    throw Mistake("--height " + std::to_string(options.height) + " leaves " + std::to_string(options.cut_rows()) +
                  " rows for " + std::to_string(comm.size()) + " ranks, and every rank needs one");
  example::must_be_writable(comm, options.json);
  const auto machine = machine_for(world, options);
  const double copy_rate = machine->copy_rate();
  std::optional<Serial> serial;
  std::optional<pixels::Report> report;
  if (comm.rank() == 0) {
    serial.emplace(options.width, options.height, false, pixels::start);
    serial->run_to(options.steps);
    report.emplace(options, machine->text(), copy_rate);
  }
  bool right = true;
  for (const std::string& way : machine->ways()) {
    if (options.exchange != "all" && options.exchange != way) continue;
    for (int ranks = 1; ranks <= comm.size(); ranks = ranks < comm.size() ? std::min(2 * ranks, comm.size()) : ranks + 1) {
      const isthmus::Comm some = comm.split(comm.rank() < ranks ? 0 : isthmus::undefined);
      if (some) {
        const Line line = run_ranks(*machine, some, options, way, serial ? &*serial : nullptr);
        right = line.right && right;
        if (report) report->add(line);
      }
      comm.barrier();
    }
  }
  right = example::sum(comm, right ? 0 : 1) == 0;
  if (report) {
    report->write_json(comm.size(), right);
    std::puts(right ? "verified: the same bits as a serial loop" : "wrong: other bits than a serial loop");
  }
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  // A kernel that is launched for the first time would wait for those that run, and they may wait for it.
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  Options options;
  example::Arguments arguments("pixels", "The mean of four neighbours on a picture, by 1, 2, 4 ... and all ranks.");
  arguments.number<std::int64_t>("--width", options.width, 3, 1 << 20, "pixels of a row, which a message has");
  arguments.number<std::int64_t>("--height", options.height, 3, 1 << 20, "rows, which are cut");
  arguments.number("--steps", options.steps, 1, 1000000000, "steps");
  arguments.word("--device", options.device, {"host", "cuda"}, "where pixels lie and are computed");
  arguments.word("--exchange", options.exchange, {"messages", "stream", "all"},
                 "how rows come to the neighbours; stream: with cuda");
  arguments.add("--json", "a file for the results", "none", [&](const std::string& path) { options.json = path; });
  arguments.word("--spoil", options.spoil, {"no", "yes"}, "");
  return example::run(arguments, argc, argv, [&](const isthmus::World& world) { return work(world, options); });
}
