//! Where the addresses of hosts come from: `/etc/hosts`, then DNS as `/etc/resolv.conf` describes it, and no other source.
//!
//! glibc would read the list of sources from `/etc/nsswitch.conf` and load a library for each of them. The program that people install is
//! static, and a library of another glibc in its process can crash it. The sources `files` and `dns` are part of glibc since 2.34. A program
//! that is linked dynamically gets the same sources, so that tests look up names as users do.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "glibc is the only way to its sources of names")
)]

#[cfg(target_env = "gnu")]
mod sources {
    use std::ffi::{CStr, c_char, c_int};

    unsafe extern "C" {
        /// Of `<nss.h>`: sets the sources of a database for the rest of the process, whatever the file says later.
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }

    /// The databases that the standard library and our crates can ask.
    const DATABASES: [(&CStr, &CStr); 4] = [
        (c"hosts", c"files dns"),
        (c"services", c"files"),
        (c"passwd", c"files"),
        (c"group", c"files"),
    ];

    pub(super) fn settle() {
        for (database, sources) in DATABASES {
            // SAFETY: both are texts with an end, which glibc copies; no other thread looks up a name yet.
            let answer = unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
            assert_eq!(answer, 0, "glibc knows {database:?} and {sources:?}");
        }
    }
}

/// Settles the sources for the whole process. The caller is the only thread, and has looked up no name yet.
pub fn settle() {
    #[cfg(target_env = "gnu")]
    sources::settle();
}
