//! The sources of host addresses: `/etc/hosts`, then DNS as configured in `/etc/resolv.conf`, and no other source.
//!
//! glibc would read the list of sources from `/etc/nsswitch.conf` and load a library for each. The released program is
//! static, and loading a library of another glibc can crash it. The sources `files` and `dns` are part of glibc since
//! 2.34. A dynamically linked program uses the same sources, so that tests resolve names as users do.
#![cfg_attr(
    target_env = "gnu",
    expect(unsafe_code, reason = "glibc is the only way to its sources of names")
)]

#[cfg(target_env = "gnu")]
mod sources {
    use std::ffi::{CStr, c_char, c_int};

    unsafe extern "C" {
        /// From `<nss.h>`: sets the sources of a database for the rest of the process, and overrides the file.
        fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
    }

    /// The databases that the standard library and the crates can ask.
    const DATABASES: [(&CStr, &CStr); 4] = [
        (c"hosts", c"files dns"),
        (c"services", c"files"),
        (c"passwd", c"files"),
        (c"group", c"files"),
    ];

    pub(super) fn settle() {
        for (database, sources) in DATABASES {
            // SAFETY: both are C strings, which glibc copies; no other thread looks up a name yet.
            let answer = unsafe { __nss_configure_lookup(database.as_ptr(), sources.as_ptr()) };
            assert_eq!(answer, 0, "glibc knows {database:?} and {sources:?}");
        }
    }
}

/// Sets the sources for the whole process. The caller must be the only thread, and must not have looked up a name yet.
pub fn settle() {
    #[cfg(target_env = "gnu")]
    sources::settle();
}
