// Runs the program of a pattern: tries alternatives in order and returns to the last one that is left.
#include "tokenizer/split_pattern.hpp"

#include "tokenizer/pattern_program.hpp"

#include <fovea/tokenizer/characters.hpp>

namespace fovea {
namespace {

class Matcher {
  public:
    Matcher(const SplitPattern::Program& program, std::string_view text)
        : program_(program),
          text_(text),
          left_(SplitPattern::most_steps(text.size())),
          marks_(program.slots),
          most_open_((size_t{1} << 20) + 8 * text.size()) {}

    // The first match from `from` on. False if there is none, or if the steps were not enough.
    bool search(size_t from, size_t& begin, size_t& end) {
        search_begin_ = from;
        for (begin = from; !exhausted_; begin = next(begin)) {
            end = begin;
            if (run(0, end)) return true;
            if (begin >= text_.size()) break;
        }
        return false;
    }
    bool exhausted() const { return exhausted_; }

    size_t next(size_t at) const { return at < text_.size() ? at + character_at(text_, at).bytes : at + 1; }

  private:
    struct Open {  // an alternative that is left
        enum Kind : uint8_t { plain, gives_back, takes_more, mark } kind;
        uint32_t step;
        size_t at, bound;
    };

    size_t before(size_t at) const {
        do --at;
        while (at > 0 && (static_cast<unsigned char>(text_[at]) & 0xc0u) == 0x80u);
        return at;
    }
    // True if a character of the set is at `at`, which then moves past it.
    bool take(uint32_t set, size_t& at) const {
        if (at >= limit_) return false;
        const SplitPattern::Program::Set& of = program_.sets[set];
        const auto byte = static_cast<unsigned char>(text_[at]);
        if (byte < 0x80) {
            at += of.ascii[byte];
            return of.ascii[byte];
        }
        const Character c = character_at(text_, at);
        if (!of.codes.has(c.value)) return false;
        at += c.bytes;
        return true;
    }
    bool is_word(size_t at) const {
        return at < text_.size() && outer_word_set().has(character_at(text_, at).value);
    }
    bool holds(PatternPlace place, size_t at) const {
        const bool first = at == 0, last = at == text_.size();
        switch (place) {
            case PatternPlace::line_begin:
                return first || (!last && text_[at - 1] == '\n');
            case PatternPlace::line_end:
                return last || text_[at] == '\n';
            case PatternPlace::text_begin:
                return first;
            case PatternPlace::text_end:
                return last;
            case PatternPlace::last_line_end:
                return last || (text_[at] == '\n' && at + 1 == text_.size());
            case PatternPlace::search_begin:
                return at == search_begin_;
            case PatternPlace::word_edge:
                return is_word(at) != (!first && is_word(before(at)));
            case PatternPlace::no_word_edge:
                return is_word(at) == (!first && is_word(before(at)));
        }
        return false;
    }
    bool spend(uint64_t steps = 1) {
        if (left_ < steps || open_.size() > most_open_) exhausted_ = true;
        left_ -= exhausted_ ? 0 : steps;
        return !exhausted_;
    }
    bool look(uint32_t step, size_t at);
    bool run(uint32_t step, size_t& at);

    const SplitPattern::Program& program_;
    std::string_view text_;
    uint64_t left_;
    std::vector<size_t> marks_;
    std::vector<Open> open_;
    size_t most_open_, search_begin_ = 0;
    size_t ends_at_ = SIZE_MAX;    // required end of look-behind steps
    size_t limit_ = text_.size();  // they take no character from there on, not even to give it back
    bool exhausted_ = false;
};

bool Matcher::look(uint32_t step, size_t at) {
    const PatternStep& s = program_.steps[step];
    const size_t outer = ends_at_, outer_limit = limit_;
    bool found = false;
    if (!s.behind) {
        ends_at_ = SIZE_MAX;
        size_t end = at;
        found = run(step + 1, end);
    } else {
        ends_at_ = limit_ = at;
        size_t from = at;
        for (uint32_t back = 0; !found && !exhausted_; ++back) {
            size_t end = from;
            found = back >= s.least && run(step + 1, end);
            if (from == 0 || back >= s.most) break;
            from = before(from);
        }
    }
    ends_at_ = outer, limit_ = outer_limit;
    return found != s.negative;
}

// Matches from `step` on; `at` becomes the end of the match.
bool Matcher::run(uint32_t step, size_t& at) {
    using Op = PatternStep::Op;
    const size_t floor = open_.size();
    while (spend()) {
        const PatternStep& s = program_.steps[step];
        bool goes_on = true;
        uint32_t to = step + 1;
        switch (s.op) {
            case Op::take:
                goes_on = take(s.set, at);
                break;
            case Op::run: {
                uint32_t count = 0;
                while (count < s.least && take(s.set, at)) ++count;
                goes_on = count >= s.least;
                if (goes_on && s.greedy) {
                    const size_t least = at;
                    while (count < s.most && take(s.set, at)) ++count;
                    if (at > least) open_.push_back({Open::gives_back, to, at, least});
                } else if (goes_on && count < s.most) {
                    open_.push_back({Open::takes_more, step, at, s.most - count});
                }
                goes_on = spend(count) && goes_on;
                break;
            }
            case Op::fork:
                open_.push_back({Open::plain, s.greedy ? s.to : to, at, 0});
                if (!s.greedy) to = s.to;
                break;
            case Op::jump:
                to = s.to;
                break;
            case Op::place:
                goes_on = holds(s.place, at);
                break;
            case Op::look:
                goes_on = look(step, at);
                to = s.to;
                break;
            case Op::atomic: {
                const size_t outer = ends_at_;
                ends_at_ = SIZE_MAX;
                goes_on = run(to, at);
                ends_at_ = outer;
                to = s.to;
                break;
            }
            case Op::mark:
                open_.push_back({Open::mark, s.slot, marks_[s.slot], 0});
                marks_[s.slot] = at;
                break;
            case Op::moved:
                if (marks_[s.slot] != at) to = s.to;
                break;
            case Op::found:
                if (ends_at_ == SIZE_MAX || at == ends_at_) {
                    open_.resize(floor);
                    return true;
                }
                goes_on = false;
                break;
        }
        while (!goes_on && open_.size() > floor) {
            Open& last = open_.back();
            if (last.kind == Open::mark) {
                marks_[last.step] = last.at;
                open_.pop_back();
                continue;
            }
            to = last.step, at = last.at;
            goes_on = true;
            if (last.kind == Open::gives_back) {
                at = before(at);
                if (at <= last.bound)
                    at = last.bound, open_.pop_back();
                else
                    last.at = at;
            } else if (last.kind == Open::takes_more) {
                const uint32_t of = last.step;
                goes_on = take(program_.steps[of].set, at);
                to = of + 1;
                last.at = at;
                if (!goes_on || --last.bound == 0) open_.pop_back();
            } else {
                open_.pop_back();
            }
        }
        if (!goes_on) break;
        step = to;
    }
    open_.resize(floor);
    return false;
}

}  // namespace

Result<SplitPattern> SplitPattern::compile(std::string_view pattern) {
    Result<Program> program = read_pattern(pattern);
    if (!program) return program.error();
    SplitPattern out;
    out.program_ = std::make_shared<const Program>(std::move(*program));
    return out;
}

bool SplitPattern::split(std::string_view text,
                         const std::function<void(size_t, size_t, bool)>& visit) const {
    Matcher matcher(*program_, text);
    size_t done = 0, from = 0, begin = 0, end = 0;
    bool any = false;
    while (from <= text.size() && matcher.search(from, begin, end)) {
        if (begin == end && any && end == done) {
            from = matcher.next(from);
            continue;
        }
        if (begin > done) visit(done, begin, false);
        visit(begin, end, true);
        done = from = end, any = true;
    }
    if (matcher.exhausted()) return false;
    if (done < text.size()) visit(done, text.size(), false);
    return true;
}

}  // namespace fovea
