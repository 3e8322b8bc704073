//! Several real operators share one lease on a real API server. One leads, the others wait and do nothing. Whatever
//! happens to the leader, no two helms ever work on the same release.

mod leadership {
    mod entitled;
    mod frozen;
    mod pods;
    mod silence;
    mod stage;
    mod takeover;
}
