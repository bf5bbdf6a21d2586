#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "command.hpp"

namespace ist::test {
namespace {

std::vector<std::string> shell(std::vector<std::string> options, const std::string& script) {
  options.insert(options.end(), {"sh", "-c", script});
  return run_words(std::move(options));
}

std::multiset<std::string> lines_of(const std::string& text) {
  std::multiset<std::string> lines;
  std::istringstream stream{text};
  for (std::string line; std::getline(stream, line);) lines.insert(line);
  return lines;
}

TEST(Run, programs_that_never_call_isthmus_run_once_per_rank) {
  Command command{run_words({"-n", "4", "echo", "-n", "-l", "hello"})};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(times_in(command.output(), "-l hello"), 4) << command.output() << " (words after the program are its own)";
  EXPECT_EQ(command.errors(), "");
}

TEST(Run, each_rank_knows_its_number_and_how_many_there_are) {
  Command command{
      shell({"-n", "3"}, "echo $ISTHMUS_RANK $ISTHMUS_SIZE $ISTHMUS_LOCAL_RANK $ISTHMUS_LOCAL_SIZE ${RANK-unset}")};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(lines_of(command.output()), (std::multiset<std::string>{"0 3 0 3 unset", "1 3 1 3 unset", "2 3 2 3 unset"}));
}

TEST(Run, the_environment_can_be_extended) {
  Command command{shell({"-n", "2", "--env", "A=1 = one", "--env", "B="}, "echo \"[$A][$B]\"")};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(times_in(command.output(), "[1 = one][]\n"), 2) << command.output();
}

TEST(Run, ranks_meet_and_connect) {
  for (const char* ranks : {"1", "2", "5"}) {
    Command command{run_words({"-n", ranks, PROGRAM, "world"})};
    EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
    EXPECT_EQ(times_in(command.output(), std::string{"world of "} + ranks), std::atoi(ranks));
  }
}

TEST(Run, sixteen_ranks_meet_whatever_the_number_of_cores) {
  const double start = now();
  Command command{run_words({"-n", "16", PROGRAM, "world", "world"})};
  EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "world of 16"), 32);
  EXPECT_LT(now() - start, allowed(8.0));
}

TEST(Run, worlds_follow_each_other_in_one_program_and_in_programs_of_one_rank) {
  Command command{shell({"-n", "3"}, std::string{PROGRAM} + " world world && " + PROGRAM + " world")};
  EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "world of 3"), 9);
}

// Rank 2 misses the first world, and is the first one at the next, which is of another program: what failed was not meant for it.
TEST(Run, the_next_program_of_a_rank_that_never_came_does_not_hear_of_the_failure) {
  const std::string script = "if [ $ISTHMUS_RANK = 2 ]; then sleep 1.5; else ISTHMUS_BOOT_TIMEOUT=0.5 " +
                             std::string{PROGRAM} + " world; sleep 2; fi; " + PROGRAM + " world";
  Command command{shell({"-n", "3"}, script)};
  EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "rank 2 did not come to the launcher"), 2) << command.output();
  EXPECT_EQ(times_in(command.output(), "world of 3"), 3) << command.output();
}

TEST(Run, a_program_started_in_the_background_by_a_shell_is_a_rank) {
  Command command{run_words({"-n", "2", "bash", "-c", std::string{PROGRAM} + " world & wait $!"})};
  EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "world of 2"), 2);
}

TEST(Run, a_second_program_of_one_rank_is_refused_while_the_first_has_a_world_and_does_not_disturb_it) {
  const std::string script = std::string{PROGRAM} + " world stay & until [ -e /proc/$!/fd/0 ] && sleep 0.3; do :; done; " +
                             PROGRAM + " world; kill $!";
  Command command{run_words({"-n", "1", "bash", "-c", script})};
  EXPECT_EQ(command.wait(), 0) << command.output() << command.errors();
  EXPECT_EQ(times_in(command.output(), "world of 1"), 1);
  EXPECT_EQ(times_in(command.output(), "is already using the connection of this rank to the launcher"), 1)
      << command.output();
}

TEST(Run, a_program_that_a_rank_starts_without_the_socket_gets_a_clear_error) {
  const std::string script = "eval \"exec ${ISTHMUS_BOOT_FD}>&-\"; exec " + std::string{PROGRAM} + " world";
  Command command{run_words({"-n", "2", "bash", "-c", script})};
  EXPECT_EQ(command.wait(), 5);
  EXPECT_NE(command.output().find("is not a rank of that job: descriptor"), std::string::npos) << command.output();
  EXPECT_NE(command.output().find("is closed here"), std::string::npos) << command.output();
}

TEST(Run, a_rank_that_ends_well_before_joining_is_named_to_the_others_quickly) {
  const double start = now();
  Command command{run_words({"-n", "3", PROGRAM, "rank-1-leaves"})};
  EXPECT_EQ(command.wait(), 5);
  EXPECT_LT(now() - start, allowed(2.0));
  EXPECT_EQ(times_in(command.output(), "error rank 1 exited with status 0 before it joined the others"), 2)
      << command.output();
}

TEST(Run, only_rank_0_reads_the_input) {
  Command command{shell({"-n", "3"}, "printf '%s:%s\\n' $ISTHMUS_RANK \"$(cat)\""), "some input"};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(lines_of(command.output()), (std::multiset<std::string>{"0:some input", "1:", "2:"}));
}

TEST(Run, prefixed_output_comes_in_whole_lines_of_both_streams) {
  const std::string script =
      "i=0; while [ $i -lt 200 ]; do echo line $i of $ISTHMUS_RANK; echo error $i >&2; i=$((i+1)); done; printf 'no end'";
  Command command{shell({"-n", "4", "-l"}, script)};
  EXPECT_EQ(command.wait(), 0);
  const auto output = lines_of(command.output());
  const auto errors = lines_of(command.errors());
  EXPECT_EQ(output.size(), 4U * 201);
  EXPECT_EQ(errors.size(), 4U * 200);
  for (int rank = 0; rank < 4; ++rank) {
    std::string prefix = "[";
    prefix += std::to_string(rank) + "] ";
    EXPECT_EQ(output.count(prefix + "no end"), 1U);
    for (int i = 0; i < 200; ++i) {
      EXPECT_EQ(output.count(prefix + "line " + std::to_string(i) + " of " + std::to_string(rank)), 1U);
      EXPECT_EQ(errors.count(prefix + "error " + std::to_string(i)), 1U);
    }
  }
}

TEST(Run, prefixed_output_of_megabytes_arrives_whole_and_very_long_lines_are_broken) {
  const std::string script = "head -c 3000000 /dev/zero | tr '\\0' x; echo; printf 'after\\n'";
  Command command{shell({"-n", "2", "--prefix-output"}, script)};
  EXPECT_EQ(command.wait(), 0);
  EXPECT_EQ(std::count(command.output().begin(), command.output().end(), 'x'), 6000000);
  EXPECT_EQ(times_in(command.output(), "[1] after\n"), 1);
  for (const std::string& line : lines_of(command.output())) EXPECT_LE(line.size(), 65536U + 4);
}

TEST(Run, a_reader_that_closes_the_output_ends_the_ranks_as_in_any_pipeline) {
  for (const char* option : {"--no-bind", "-l"}) {
    const std::string pipeline = std::string{LAUNCHER} + " run -n 2 " + option + " yes | head -n 1; exit ${PIPESTATUS[0]}";
    Command command{{"bash", "-c", pipeline}};
    EXPECT_EQ(command.wait(), 128 + SIGPIPE) << option;
    EXPECT_EQ(times_in(command.output(), "y\n"), 1);
    EXPECT_EQ(command.marked().size(), 0U);
  }
}

TEST(Run, wrong_uses_are_refused_in_one_line_with_status_2) {
  const auto refused = [](std::vector<std::string> words, const std::string& text) {
    Command command{run_words(words)};
    EXPECT_EQ(command.wait(), 2);
    const std::string all = command.errors() + command.output();
    EXPECT_NE(all.find(text), std::string::npos) << all;
  };
  refused({}, "-n is missing");
  refused({"echo"}, "-n is missing");
  refused({"echo", "-n", "2"}, "-n comes before the program");
  refused({"-np", "2", "echo"}, "here it is -n");
  refused({"-N", "2", "echo"}, "not expected: -N");
  refused({"-n", "0", "echo"}, "from 1 to 1024, not \"0\"");
  refused({"-n", "-3", "echo"}, "from 1 to 1024, not \"-3\"");
  refused({"-n", "4x", "echo"}, "from 1 to 1024, not \"4x\"");
  refused({"-n", "99999999999", "echo"}, "from 1 to 1024, not \"99999999999\"");
  refused({"-n", "1025", "echo"}, "from 1 to 1024");
  refused({"-n", "2"}, "the program is missing");
  refused({"-n", "2", "--"}, "the program is missing");
  refused({"-n", "2", "--nosuch", "echo"}, "--nosuch");
  refused({"-n", "2", "--env", "NOVALUE", "echo"}, "expected NAME=VALUE, not \"NOVALUE\"");
  refused({"-n", "2", "--grace", "-1", "echo"}, "from 0 to 3600, not \"-1\"");
  refused({"-n", "2", "--bind", "--no-bind", "echo"}, "--no-bind");
}

TEST(Run, programs_that_cannot_be_started_are_named_once_with_the_status_shells_use) {
  Command missing{run_words({"-n", "3", "no-such-program-here"})};
  EXPECT_EQ(missing.wait(), 127);
  EXPECT_EQ(times_in(missing.errors(), "\n"), 1) << missing.errors();
  EXPECT_NE(missing.errors().find("cannot start \"no-such-program-here\": No such file"), std::string::npos);
  Command closed{run_words({"-n", "3", "/etc/passwd"})};
  EXPECT_EQ(closed.wait(), 126);
  EXPECT_EQ(times_in(closed.errors(), "\n"), 1) << closed.errors();
  EXPECT_NE(closed.errors().find("cannot start \"/etc/passwd\": Permission denied"), std::string::npos);
  Command folder{run_words({"-n", "3", "/tmp"})};
  EXPECT_EQ(folder.wait(), 126);
  Command after_dashes{run_words({"-n", "2", "--", "echo", "-l", "--", "x"})};
  EXPECT_EQ(after_dashes.wait(), 0);
  EXPECT_EQ(after_dashes.output(), "-l -- x\n-l -- x\n");
}

TEST(Run, ranks_are_bound_only_to_processors_the_command_may_use) {
  Command forced{shell({"-n", "3", "--bind"}, "grep Cpus_allowed_list /proc/self/status")};
  EXPECT_EQ(forced.wait(), 0);
  EXPECT_EQ(times_in(forced.output(), "Cpus_allowed_list"), 3);
  Command one{
      {"taskset", "-c", "0", LAUNCHER, "run", "-n", "2", "--bind", "grep", "Cpus_allowed_list", "/proc/self/status"}};
  EXPECT_EQ(one.wait(), 0);
  EXPECT_EQ(times_in(one.output(), "Cpus_allowed_list:\t0\n"), 2) << one.output();
  std::ifstream file{"/proc/self/status"};
  std::string all{std::istreambuf_iterator<char>{file}, {}};
  const auto start = all.find("Cpus_allowed_list");
  const std::string mine = all.substr(start, all.find('\n', start) - start);
  Command free{run_words({"-n", "2", "--no-bind", "grep", "Cpus_allowed_list", "/proc/self/status"})};
  EXPECT_EQ(free.wait(), 0);
  EXPECT_EQ(times_in(free.output(), mine + "\n"), 2) << free.output();
}

// Neither side can read what the other one says: each of them tells what it knows.
TEST(Run, a_library_of_another_version_is_told_of_on_both_sides) {
  for (const char* spoken : {"unset ISTHMUS_BOOT_VERSION", "export ISTHMUS_BOOT_VERSION=1"}) {
    Command command{shell({"-n", "2"}, std::string{spoken} + "; exec " PROGRAM " world")};
    EXPECT_NE(command.wait(), 0);
    EXPECT_GE(times_in(command.output(), "speaks version 1 of the start-up protocol, and the library of this program"), 1)
        << command.output();
  }
  // What one of version 1 begins with, which then hears nothing and ends.
  const std::string header = "BTsI\\001\\000" + [] {
    std::string zeros;
    for (int i = 0; i < 42; ++i) zeros += "\\000";
    return zeros;
  }();
  Command command{run_words({"-n", "3", "bash", "-c", "printf '" + header + "' >&$ISTHMUS_BOOT_FD; sleep 0.5; exit 3"})};
  EXPECT_EQ(command.wait(), 3);
  EXPECT_EQ(times_in(command.errors(), "cannot be understood: it speaks version 1 of the start-up protocol"), 1)
      << command.errors();
}

}  // namespace
}  // namespace ist::test
