//! Several operators, one lease: real ones on a real API server. One leads, the others wait and do nothing; whatever
//! becomes of the leader, no release ever has two helms.

mod leadership {
    mod entitled;
    mod frozen;
    mod pods;
    mod silence;
    mod stage;
    mod takeover;
}
