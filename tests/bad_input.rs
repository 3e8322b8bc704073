//! Bad input of every kind, given to the built operator on a real API server.
//!
//! Each test first installs two modules, then breaks something, and asks the same of each answer: the culprit is named
//! with what to do about it, the others go on, and what was installed before is still there, object by object.

mod bad_input {
    mod absence;
    mod alone;
    mod alterations;
    mod api_server;
    mod brake;
    mod config;
    mod crowd;
    mod dead_disk;
    mod disk;
    mod edits;
    mod events;
    mod exhaustion;
    mod garbage;
    mod half_copies;
    mod hanging;
    mod helm;
    mod hooks;
    mod lost;
    mod proxy;
    mod scripts;
    mod secrets;
    mod stage;
    mod values_files;
    mod vandals;
}
