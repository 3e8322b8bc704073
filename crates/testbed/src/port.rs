//! Reserves ports of this machine for programs that start later.
//!
//! Must never listen: connections to a reserved port are refused until its program listens.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// A reserved port, on all addresses of the machine. The system gives it to no other program that asks for any free
/// port.
///
/// A program that names the port can listen on it repeatedly, if it sets `SO_REUSEADDR` as servers do. Before that,
/// connections are refused. Without a reservation, a port that was found free may be taken a moment later.
#[derive(Debug)]
pub struct KeptPort {
    number: u16,
    /// A bound socket keeps the port from others. It does not listen, so the program can still bind the port.
    _socket: OwnedFd,
}

impl KeptPort {
    /// Reserves a port until the value is dropped.
    ///
    /// # Errors
    ///
    /// The system has no free port.
    pub fn keep() -> io::Result<Self> {
        let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        bind(&socket, &SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0))?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self {
            number: address.port(),
            _socket: socket,
        })
    }

    /// The port's number.
    pub const fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_kept_port_is_given_to_nobody_but_a_program_that_names_it() {
        let kept = KeptPort::keep().unwrap();
        let address = (Ipv4Addr::new(127, 0, 0, 2), kept.number());
        assert_eq!(
            TcpStream::connect(address).unwrap_err().kind(),
            io::ErrorKind::ConnectionRefused
        );

        // Twice, because a restarted program has to find its port free again.
        for _ in 0..2 {
            let listener = TcpListener::bind(address).unwrap();
            let asked = TcpStream::connect(address).unwrap();
            drop((listener, asked));
        }
        // A socket without `SO_REUSEADDR`, as if the system looked for a free port: the kept port counts as taken.
        let other = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let refused = bind(&other, &SocketAddrV4::new(address.0, address.1)).unwrap_err();
        assert_eq!(refused, rustix::io::Errno::ADDRINUSE);
    }
}
