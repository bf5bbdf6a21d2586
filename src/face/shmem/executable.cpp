#include "face/shmem/executable.hpp"

#include <elf.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <span>

namespace ist {
namespace {

using Header = ElfW(Phdr);

std::uintptr_t page_size() { return static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE)); }
std::uintptr_t page_of(std::uintptr_t address) { return address & ~(page_size() - 1); }
std::uintptr_t page_behind(std::uintptr_t address) { return page_of(address + page_size() - 1); }
std::byte* at(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }  // NOLINT(performance-no-int-to-ptr)

// FNV-1a, of 64 bits.
std::uint64_t hash(std::uint64_t before, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) before = (before ^ (value >> (8 * i) & 0xffU)) * 0x100000001b3ULL;
  return before;
}

std::uint64_t plan_of(std::span<const Header> headers) {
  std::uint64_t plan = 0xcbf29ce484222325ULL;
  for (const Header& each : headers)
    for (const std::uint64_t value :
         {std::uint64_t{each.p_type}, std::uint64_t{each.p_flags}, std::uint64_t{each.p_offset}, std::uint64_t{each.p_vaddr},
          std::uint64_t{each.p_filesz}, std::uint64_t{each.p_memsz}})
      plan = hash(plan, value);
  return plan;
}

// Notes are a length of the name, one of what it says, its kind, the name, and what it says, in whole words of 4 bytes.
std::string build_id_in(std::span<const std::byte> notes) {
  const auto whole = [](std::size_t bytes) { return (bytes + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note{};
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t text = sizeof note + whole(note.n_namesz);
    const std::size_t length = text + whole(note.n_descsz);
    if (length > notes.size()) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(&notes[sizeof note], "GNU", 4) == 0) {
      std::string id;
      for (const std::byte each : notes.subspan(text, note.n_descsz)) {
        id += "0123456789abcdef"[std::to_integer<unsigned>(each >> 4)];
        id += "0123456789abcdef"[std::to_integer<unsigned>(each & std::byte{15})];
      }
      return id;
    }
    notes = notes.subspan(length);
  }
  return {};
}

std::string own_name() {
  std::array<char, PATH_MAX> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size() - 1);
  const std::string text{path.data(), length > 0 ? static_cast<std::size_t>(length) : 0};
  return text.substr(text.rfind('/') + 1);
}

// Without the pages at its beginning that were made read-only: those that lie wholly before the end of `fixed`.
void add_segment(Executable& program, const Header& header, const Header* fixed) {
  const std::uintptr_t from = program.base + header.p_vaddr;
  const std::uintptr_t to = from + header.p_memsz;
  std::uintptr_t first = from;
  if (fixed != nullptr) {
    const std::uintptr_t fixed_from = program.base + fixed->p_vaddr;
    const std::uintptr_t fixed_to = page_of(fixed_from + fixed->p_memsz);
    if (fixed_from < to && fixed_to > from) first = fixed_to;
  }
  if (first >= to) return;
  const std::uintptr_t begin = page_of(first);
  program.segments.push_back({at(begin), Bytes{page_behind(to) - begin}, at(first), at(to)});
}

// The first of all objects is the program itself.
int look_at_first(dl_phdr_info* object, std::size_t, void* out) {
  Executable& program = *static_cast<Executable*>(out);
  const std::span headers{object->dlpi_phdr, object->dlpi_phnum};
  program.base = object->dlpi_addr;
  program.plan = plan_of(headers);
  const auto fixed = std::ranges::find(headers, ElfW(Word){PT_GNU_RELRO}, &Header::p_type);
  for (const Header& each : headers) {
    if (each.p_type == PT_NOTE && program.build_id.empty())
      program.build_id = build_id_in({at(program.base + each.p_vaddr), each.p_memsz});
    if (each.p_type == PT_LOAD && (each.p_flags & PF_W) != 0 && (each.p_flags & PF_X) == 0)
      add_segment(program, each, fixed == headers.end() ? nullptr : &*fixed);
  }
  return 1;
}

}  // namespace

Executable this_executable() {
  Executable program;
  ::dl_iterate_phdr(look_at_first, &program);
  program.name = own_name();
  return program;
}

ExecutableCard card_of(const Executable& program) {
  ExecutableCard card;
  program.name.copy(card.name.data(), card.name.size() - 1);
  program.build_id.copy(card.build_id.data(), card.build_id.size() - 1);
  card.plan = program.plan;
  card.segments = program.segments.size();
  for (std::size_t i = 0; i < std::min(program.segments.size(), card.extents.size()); ++i)
    card.extents[i] = {reinterpret_cast<std::uintptr_t>(program.segments[i].begin) - program.base,
                       program.segments[i].bytes.value};
  return card;
}

std::string difference(const ExecutableCard& first, const ExecutableCard& other, int pe) {
  const std::string who = "PE " + std::to_string(pe) + " runs " + other.name.data() + ", PE 0 " + first.name.data();
  if (first.segments != other.segments)
    return who + ": they have " + std::to_string(other.segments) + " and " + std::to_string(first.segments) +
           " segments of variables";
  for (std::size_t i = 0; i < std::min<std::size_t>(first.segments, first.extents.size()); ++i) {
    if (first.extents[i] == other.extents[i]) continue;
    return who + ": their variables have " + std::to_string(other.extents[i].bytes) + " bytes at offset " +
           std::to_string(other.extents[i].offset) + ", and " + std::to_string(first.extents[i].bytes) + " at offset " +
           std::to_string(first.extents[i].offset);
  }
  if (first.build_id != other.build_id)
    return who + ": their build-ids are " + other.build_id.data() + " and " + first.build_id.data();
  if (first.plan != other.plan) return who + ": their code has other lengths or places";
  return {};
}

}  // namespace ist
