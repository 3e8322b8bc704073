//! Ports of this machine that are kept for programs that start later.
//!
//! Must never listen: nobody answers on a kept port until its program does.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt};

/// A port, on all addresses of the machine, that the system gives to nobody who asks for any port.
///
/// A program that names the port can listen on it, as often as it likes, if it sets `SO_REUSEADDR` as servers do; a
/// connection to it is refused before. A port that is only found free and let go may be another's a moment later.
#[derive(Debug)]
pub struct KeptPort {
    number: u16,
    /// Bound, which keeps the port from others; without a listener, which keeps it open for the program.
    _socket: OwnedFd,
}

impl KeptPort {
    /// Keeps a port until this is dropped.
    ///
    /// # Errors
    ///
    /// If the system has no port left.
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

    /// As it stands in an address.
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

        // More than once: a program that is restarted finds its port again.
        for _ in 0..2 {
            let listener = TcpListener::bind(address).unwrap();
            let asked = TcpStream::connect(address).unwrap();
            drop((listener, asked));
        }
        // As the system asks for itself when it looks for any port.
        let other = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let refused = bind(&other, &SocketAddrV4::new(address.0, address.1)).unwrap_err();
        assert_eq!(refused, rustix::io::Errno::ADDRINUSE);
    }
}
