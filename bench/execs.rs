//! Counts the processes that a process and its descendants start. The kernel reports each start as an event, so a
//! short-lived process is counted too. Listening needs root; without root there is no count, rather than a wrong one.
#![expect(unsafe_code, reason = "a netlink socket exists only in libc")]

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// An event of the kernel: a fork, or an exec of another program.
#[derive(Clone, Debug)]
enum Event {
    Fork { parent: u32, child: u32 },
    Exec { process: u32, program: String },
}

/// A listener for all forks and execs of this machine since it was opened.
#[derive(Debug)]
pub(crate) struct Execs {
    events: Arc<Mutex<Vec<Event>>>,
}

impl Execs {
    /// Opens the listener; events count from now on.
    pub(crate) fn listen() -> io::Result<Self> {
        let socket = open()?;
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        thread::Builder::new()
            .name("process-events".to_owned())
            .spawn(move || {
                // An error means lost events; the counts that follow would be wrong, and there is no way to go on.
                while let Ok(message) = receive(&socket) {
                    heard
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .extend(read(&message));
                }
            })?;
        Ok(Self { events })
    }

    /// The descendants of a process, each as the last program that it executed: a script is first `env` and then its
    /// shell. The caller asks when no process is being started any more.
    pub(crate) fn below(&self, root: u32) -> Vec<String> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let mut family = BTreeSet::from([root]);
        let mut programs = BTreeMap::new();
        for event in events.iter() {
            match event {
                Event::Fork { parent, child } if family.contains(parent) => drop(family.insert(*child)),
                Event::Exec { process, program } if *process != root && family.contains(process) => {
                    programs.insert(*process, program.clone());
                }
                Event::Fork { .. } | Event::Exec { .. } => {}
            }
        }
        programs.into_values().collect()
    }

    /// Forgets all events so far.
    pub(crate) fn forget(&self) {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// `CN_IDX_PROC`, the connector of process events, and its only group.
const CONNECTOR: u32 = 1;
const LISTEN: u32 = 1;
const FORK: u32 = 1;
const EXEC: u32 = 2;
/// Length of the headers before the event: the netlink header and the connector's.
const HEADERS: usize = 16 + 20;
/// Length of the event's common fields: kind, processor and time.
const PREFIX: usize = 16;
/// The receive buffer must hold the events that arrive while the reading thread is not scheduled.
static BUFFER: libc::c_int = 16 << 20;

fn open() -> io::Result<OwnedFd> {
    // SAFETY: plain system calls on values that live as long as the calls; the descriptor is owned as soon as it is
    // made.
    unsafe {
        let raw = libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_DGRAM | libc::SOCK_CLOEXEC,
            libc::NETLINK_CONNECTOR,
        );
        if raw < 0 {
            return Err(io::Error::last_os_error());
        }
        let socket = OwnedFd::from_raw_fd(raw);
        let size = socklen::<libc::c_int>();
        libc::setsockopt(
            raw,
            libc::SOL_SOCKET,
            libc::SO_RCVBUFFORCE,
            (&raw const BUFFER).cast(),
            size,
        );
        let mut address: libc::sockaddr_nl = mem::zeroed();
        address.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).map_err(io::Error::other)?;
        address.nl_groups = CONNECTOR;
        if libc::bind(raw, (&raw const address).cast(), socklen::<libc::sockaddr_nl>()) != 0 {
            return Err(io::Error::last_os_error());
        }
        let request = subscription();
        if libc::send(raw, request.as_ptr().cast(), request.len(), 0) < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }
}

fn socklen<T>() -> libc::socklen_t {
    libc::socklen_t::try_from(size_of::<T>()).unwrap_or_default()
}

/// The message that asks for all process events.
fn subscription() -> Vec<u8> {
    const LENGTH: u32 = 16 + 20 + 4;
    const DONE: u16 = 3;
    let header = [LENGTH.to_ne_bytes(), [0; 4], [0; 4], [0; 4]].concat();
    let mut message = header;
    message[4..6].copy_from_slice(&DONE.to_ne_bytes());
    for word in [CONNECTOR, 1, 0, 0] {
        message.extend(word.to_ne_bytes());
    }
    message.extend(4_u16.to_ne_bytes());
    message.extend(0_u16.to_ne_bytes());
    message.extend(LISTEN.to_ne_bytes());
    message
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let mut buffer = vec![0; 4096];
    // SAFETY: the call gets the length of the buffer that it writes to.
    let length = unsafe { libc::recv(socket.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), 0) };
    buffer.truncate(usize::try_from(length).map_err(|_| io::Error::last_os_error())?);
    Ok(buffer)
}

fn read(message: &[u8]) -> Option<Event> {
    let word = |at: usize| Some(u32::from_ne_bytes(message.get(at..at + 4)?.try_into().ok()?));
    let about = HEADERS + PREFIX;
    match word(HEADERS)? {
        FORK => {
            let (parent, thread, child) = (word(about + 4)?, word(about + 8)?, word(about + 12)?);
            // A new thread is no new process.
            (thread == child).then_some(Event::Fork { parent, child })
        }
        EXEC => {
            let process = word(about + 4)?;
            Some(Event::Exec {
                process,
                program: program(process),
            })
        }
        _ => None,
    }
}

/// The file name of the process's program; for a shell or `env`, the name of the script that it runs.
fn program(process: u32) -> String {
    let line = fs_err::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).into_owned();
    let mut words = line.split('\0').map(|word| word.rsplit('/').next().unwrap_or_default());
    match (words.next(), words.next()) {
        (Some("bash" | "sh" | "env"), Some(script)) if !script.is_empty() => script.to_owned(),
        (Some(first), _) if !first.is_empty() => first.to_owned(),
        // The process ended before its command line could be read.
        _ => "?".to_owned(),
    }
}
