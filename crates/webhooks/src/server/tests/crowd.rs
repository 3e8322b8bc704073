//! Many clients at once, and clients that send no complete request.

use std::sync::atomic::AtomicUsize;

use super::*;

/// The number of slow senders.
const SLOW: usize = 40;
const SPOKEN: Duration = Duration::from_secs(30);
const CONVERSION: &str = r#"{"request": {"desiredAPIVersion": "g/v1"}}"#;

async fn converted(_: Asked) -> Reply {
    Reply::Review(Json::from(&json!("done")))
}

fn head(path: &str, length: usize) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\nExpect: 100-continue\r\n\r\n"
    )
}

impl Running {
    /// A connection from another loopback address.
    async fn from(&self, last: u8) -> io::Result<TlsStream<TcpStream>> {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(([127, 0, 0, last], 0).into()).unwrap();
        let tcp = socket.connect(self.address).await.unwrap();
        shaken(tcp, &self.stored, None, ALL_VERSIONS).await
    }

    /// Announces a body; returns the connection and the first answer.
    async fn announced(&self, last: u8, path: &str, length: usize) -> (TlsStream<TcpStream>, String) {
        let mut stream = self.from(last).await.unwrap();
        stream.write_all(head(path, length).as_bytes()).await.unwrap();
        let mut word = vec![0; 12];
        stream.read_exact(&mut word).await.unwrap();
        (stream, String::from_utf8(word).unwrap())
    }

    async fn is_answered(&self) {
        let (_, body) = timeout(SPOKEN, self.post("/crd", CONVERSION)).await.unwrap();
        assert_eq!(body, r#""done""#);
    }

    fn refused(&self, reason: &str) -> bool {
        self.refusals(reason) > 0
    }

    fn refusals(&self, reason: &str) -> u64 {
        let text = self.meters.render(None);
        let of = |line: &&str| line.starts_with("own_reviews_refused_total") && line.contains(reason);
        let counts = text.lines().filter(of).filter_map(|line| line.rsplit(' ').next());
        counts.map(|count| count.parse::<u64>().unwrap()).sum()
    }
}

#[tokio::test]
async fn the_body_of_a_request_that_nobody_answers_is_not_read() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    for (reviews, path) in [
        (Reviews::Admission, "/hooks/unknown"),
        (Reviews::Admission, "/config-map"),
        (Reviews::Admission, "/crd"),
        (Reviews::Conversion, "/crds"),
        (Reviews::Conversion, "/hooks/a-b-c"),
    ] {
        let count = Arc::clone(&count);
        let running = Running::start(reviews, move |asked| {
            count.fetch_add(1, Relaxed);
            converted(asked)
        })
        .await;
        // A server that wants the body would answer `100 Continue` first.
        let (_, said) = running.announced(1, path, 1 << 20).await;
        assert_eq!(said, "HTTP/1.1 404", "{path}");
        assert!(running.refused("unknown_path"), "{path}");
    }
    assert_eq!(asked.load(Relaxed), 0);
}

#[tokio::test]
async fn who_sends_slowly_stops_nobody() {
    let running = Running::start(Reviews::Conversion, converted).await;
    let mut slow = Vec::new();
    for _ in 0..SLOW {
        let (mut stream, said) = running.announced(1, "/crd", 70 << 10).await;
        assert_eq!(said, "HTTP/1.1 100");
        stream.write_all(&vec![b' '; 65 << 10]).await.unwrap();
        stream.flush().await.unwrap();
        slow.push(stream);
    }
    running.is_answered().await;
    // If slow senders used these places, most of them would have been cut off before.
    let (cut_off, places) = (running.refusals("slow"), Reviews::Conversion.at_once());
    assert!(
        cut_off <= (SLOW - places) as u64,
        "{cut_off} of the slow senders were cut off before"
    );
    for mut stream in slow {
        let mut rest = String::new();
        timeout(SPOKEN, stream.read_to_string(&mut rest))
            .await
            .unwrap()
            .unwrap();
        assert!(rest.contains("HTTP/1.1 408"), "{rest}");
    }
    assert!(running.refused("slow"));
}

#[tokio::test]
async fn one_address_cannot_take_all_the_memory_for_bodies() {
    let running = Running::start(Reviews::Conversion, converted).await;
    let largest = Reviews::Conversion.body_limit();
    let (_first, said) = running.announced(2, "/crd", largest).await;
    assert_eq!(said, "HTTP/1.1 100");
    let (mut second, said) = running.announced(2, "/crd", 1).await;
    assert_eq!(said, "HTTP/1.1 429");
    let mut rest = String::new();
    second.read_to_string(&mut rest).await.unwrap();
    assert!(rest.contains("retry-after: 1\r\n"), "{rest}");
    running.is_answered().await;
    // A client that sends its body at once gets the answer too.
    let mut third = running.from(2).await.unwrap();
    let whole = post("/crd", "application/json", &" ".repeat(1 << 20));
    third.write_all(whole.as_bytes()).await.unwrap();
    let mut said = String::new();
    third.read_to_string(&mut said).await.unwrap();
    assert!(said.starts_with("HTTP/1.1 429"), "{said}");
    let (_third, said) = running.announced(3, "/crd", largest).await;
    assert_eq!(said, "HTTP/1.1 100");
    let (_fourth, said) = running.announced(4, "/crd", 1).await;
    assert_eq!(said, "HTTP/1.1 429", "there is no more for anybody");
    assert!(running.refused("no_room"));
    let (_, said) = running.announced(4, "/crd", largest + 1).await;
    assert_eq!(said, "HTTP/1.1 413");
}

/// A body of unknown length.
#[tokio::test]
async fn a_body_in_pieces_counts_as_it_grows() {
    let running = Running::start(Reviews::Conversion, converted).await;
    let largest = Reviews::Conversion.body_limit();
    let (_first, _) = running.announced(2, "/crd", largest - (1 << 20)).await;
    let mut stream = running.from(2).await.unwrap();
    let head = format!(
        "POST /crd HTTP/1.1\r\nHost: {NAME}\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let piece = format!("10000\r\n{}\r\n", " ".repeat(0x1_0000));
    for _ in 0..32 {
        // The server may have closed the connection.
        let _ = stream.write_all(piece.as_bytes()).await;
    }
    let mut said = vec![0; 12];
    stream.read_exact(&mut said).await.unwrap();
    assert_eq!(said, b"HTTP/1.1 429");
}

#[tokio::test]
async fn a_small_body_that_becomes_large_is_not_read() {
    let running = Running::start(Reviews::Admission, echo).await;
    let many = format!(r#"{{"request": {{"object": [{}{{}}]}}}}"#, "{},".repeat(1 << 18));
    let (head, said) = running.post("/hooks/a-b-c", &many).await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    assert!(said.contains("so many fields"), "{said}");
}

#[tokio::test]
async fn one_address_has_so_many_connections_and_others_have_theirs() {
    let running = Running::start(Reviews::Admission, echo).await;
    let mut open = Vec::new();
    while let Ok(stream) = running.from(2).await {
        open.push(stream);
        assert!(open.len() <= 64);
    }
    assert_eq!(open.len(), 64);
    assert_eq!(
        running.post("/hooks/a-b-c", REQUEST).await.1,
        r#"{"path":"/hooks/a-b-c"}"#
    );
    drop(open.pop());
    // The place is free once the listener has noticed the end.
    while running.from(2).await.is_err() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn who_says_nothing_does_not_stay() {
    let running = Running::start(Reviews::Admission, echo).await;
    let mut silent = running.from(2).await.unwrap();
    let mut word = Vec::new();
    // Either an end or an error, as long as it comes.
    let _ = timeout(SPOKEN, silent.read_to_end(&mut word)).await.unwrap();
    assert!(word.is_empty());
}
