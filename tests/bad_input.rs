//! Bad input of every kind, given to the built operator on a real API server.
//!
//! Each test first installs two modules and then breaks something. It always checks the same: the operator names the
//! culprit and a remedy, the other modules go on, and every object that was installed before still exists.

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
    mod health;
    mod helm;
    mod hooks;
    mod loops;
    mod lost;
    mod plans;
    mod proxy;
    mod records;
    mod reload;
    mod requests;
    mod returning;
    mod scripts;
    mod secrets;
    mod sources;
    mod stage;
    mod status_objects;
    mod suspended;
    mod values_files;
    mod vandals;
    mod waits;
}
