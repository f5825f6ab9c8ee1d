// Shared by the readers of files and addresses: turns the given keys into a session.
#pragma once

#include <fovea/model/session.hpp>

#include <string>
#include <vector>

namespace fovea {

// A value as it was given: scalars as text, a list's items by comma.
struct GivenKey {
    std::string key, text;
    bool scalar = true;  // false: an object, or null
    bool twice = false;  // given again, which a note says once
};

// Collects keys and what the reader is to be told. Borrows the reader.
struct SessionReading {
    const SessionReader& reader;
    std::string place;  // prefix of a part: "kept: "
    std::vector<SessionNote> notes;

    // The first hundred are kept, so that a file costs what its size asks for.
    void note(std::string_view key, std::string text);
    // Every key once; where one is given twice the last counts, as in every reader of JSON that does not
    // refuse. Of keys that no session has the first twenty are kept, to be noted.
    void add(GivenKey given);
    // The session of all keys; what could not be taken is in the notes.
    Session take();

    std::vector<GivenKey> all = {};
    size_t unknown = 0;  // keys that no session has
};

// A key's value as the text that it is read from.
std::string session_key_text(const Session& session, const SessionKey& key);
Error refused_session(std::string text);
// Appends a note; after the hundredth one that says that there are more, and no further ones.
void add_note(std::vector<SessionNote>& notes, SessionNote note);

}  // namespace fovea
