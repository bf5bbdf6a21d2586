// Messages that OpenCL queues send and receive: a thread that does so when the queue has come to them.
//
// Who calls this : api_queue.cpp; the world owns one.
// Threads        : any. The thread is started by the first call and makes no other; drivers tell it that a turn has come.
// Ownership      : owns the turns that it has put into queues, until they are over; looks at engine and kinds, which outlive it.
// Errors         : of a call: returned, and then the queue holds nothing of it. Of a message: told by the next call on its channel, or
//                  by close(); the queue goes on as after a failed command.
//
// A call puts a turn into the queue (memory/queues.hpp). When it has come the thread starts ordinary messages in a context that no
// others use, and lets the queue go on when they are over. OpenCL has no kernels that can wait for another process, and no processor
// waits here either: only the queue does.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "face/message/stream_channels.hpp"
#include "memory/queues.hpp"
#include "request/wait.hpp"

namespace ist {

class QueueChannels {
 public:
  struct Half {
    ChannelName name;
    Piece piece;                                  // checked, and admitted to the queue
    std::optional<PackWork> work = std::nullopt;  // of what does not lie in one piece; the piece has all of it
    SharedLayout types = nullptr;                 // where types are compared
  };
  // What one call puts into a queue: a receive, a send, or both.
  struct Call {
    std::uint64_t queue = 0;
    QueueEvents events;
    std::optional<Half> in;
    std::optional<Half> out;
  };

  QueueChannels(Engine& engine, StreamChannels& channels) : engine_(engine), channels_(channels) {}
  ~QueueChannels();
  QueueChannels(const QueueChannels&) = delete;
  QueueChannels& operator=(const QueueChannels&) = delete;

  // Why there are none, or what makes them.
  Result<Queues*> kind() const;
  Status put(const Call& call);
  // Waits until the other rank has said that it uses the channel in queues, too.
  Status prepare(const ChannelName& name);

  // The thread is over; what is under way stays so.
  void stop();
  // After the engine has ended what it could: queues go on, and what was not told yet is.
  Status close();

 private:
  struct Channel {
    StreamChannels::Key key;
    Scope scope;
    std::string words;  // what errors call it
    Status trouble;     // of a message, not told yet
  };
  struct Message {
    Channel* channel = nullptr;
    Piece piece;
    std::optional<PackWork> work = std::nullopt;
    SharedLayout types = nullptr;
    std::unique_ptr<LaidOut> laid = nullptr;  // what is sent of that, or received: made when the turn has come
    OperationId operation = {};
    bool over = false;
  };
  struct Turn {
    std::unique_ptr<QueueTurn> place;
    std::vector<Message> messages;  // what is received comes first
    bool left = false;              // the engine may still read what it names
  };
  Status start_thread();
  // This rank's end, on which nothing has gone wrong that was not told.
  Result<Channel*> channel(const ChannelName& name);
  void has_come(std::uint64_t number);
  void wake_thread();

  // Under the lock: a turn has come, or the thread must end.
  bool news() const;

  // What the thread does.
  void run();
  void wait(Patience& patience, bool moved, bool polls);
  void glance();
  std::vector<Turn> take_come();
  void begin(Turn turn);
  bool look(bool& polls);
  void lay_out(Turn& turn);
  void tell(const Message& message, const Status& why);
  // Under the engine's lock.
  Status start(Turn& turn);
  Result<OperationId> start(Message& message, bool& done);
  void look_at(Turn& turn);
  void end(Message& message, const Status& why);
  void give_up(Turn& turn, const Status& why);

  Engine& engine_;
  StreamChannels& channels_;
  // The thread's own, and close()'s after it.
  std::vector<Turn> under_way_;
  std::vector<Turn> left_;  // over, while the engine may still read what they name
  int fruitless_ = 0;
  std::chrono::steady_clock::time_point next_glance_ = {};

  // Held for a moment, and never during a call of the driver's or of the engine's.
  std::mutex mutex_;
  std::condition_variable news_;
  std::unordered_map<StreamChannels::Key, std::unique_ptr<Channel>, StreamChannels::Hash> known_;
  std::map<std::uint64_t, Turn>
      in_queues_;                 // what is before them is not over yet; without a place: while they are put there
  std::set<std::uint64_t> come_;  // but now it is
  std::uint64_t last_turn_ = 0;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace ist
