//! The little HTTP that etcd's health check and Toxiproxy's API need: one request, one answer, plain text, 127.0.0.1.
//! An HTTP client as a dependency was refused for these few calls.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

/// Status code and body of an answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: String,
}

/// Sends one request to a port of 127.0.0.1 and reads the answer to its end.
pub(crate) async fn request(port: u16, method: &'static str, path: String, body: String) -> std::io::Result<Answer> {
    tokio::task::spawn_blocking(move || exchange(port, method, &path, &body)).await?
}

fn exchange(port: u16, method: &str, path: &str, body: &str) -> std::io::Result<Answer> {
    const DEADLINE: Duration = Duration::from_secs(10);
    let mut stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), DEADLINE)?;
    stream.set_read_timeout(Some(DEADLINE))?;
    stream.set_write_timeout(Some(DEADLINE))?;
    // HTTP/1.0: the server closes at the end and does not chunk.
    let request = format!(
        "{method} {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| std::io::Error::other(format!("not an HTTP answer: {answer:?}")))
}

fn parse(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?.parse().ok()?;
    Some(Answer {
        status,
        body: body.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn an_answer_is_a_status_and_a_body() {
        let answer = parse("HTTP/1.0 404 Not Found\r\nContent-Length: 4\r\n\r\ngone").unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "gone"));
    }

    #[test]
    fn what_is_not_http_is_no_answer() {
        assert!(parse("").is_none());
        assert!(parse("SSH-2.0-x\r\n\r\n").is_none());
        assert!(parse("HTTP/1.1 abc\r\n\r\n").is_none());
    }
}
