//! Serves the log of a container, once or as it grows.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fs_err as fs;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::Response;
use hyper::body::{Bytes, Frame};
use tokio::time::sleep;

use super::{Asked, Body, ServeError, runs, text};

pub(super) fn answer(folder: &Path, container: &str, asked: &Asked) -> Result<Response<Body>, ServeError> {
    let back = usize::from(asked.is_set("previous"));
    let (number, file) = runs(&folder.join("logs").join(container))
        .into_iter()
        .nth_back(back)
        .ok_or_else(|| ServeError::Run(container.to_owned()))?;
    let content = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
    let end = content.len() as u64;
    let shown = match asked.number("tailLines") {
        Some(lines) => tail(&content, lines),
        None => &content,
    };
    let mut most = asked.number("limitBytes").unwrap_or(shown.len()).min(shown.len());
    while !shown.is_char_boundary(most) {
        most -= 1;
    }
    let shown = shown[..most].to_owned();
    if !asked.is_set("follow") {
        return Ok(Response::new(text(shown)));
    }
    let follow = Follow {
        // This file is removed when the container has ended, which ends the log.
        running: folder.join("containers").join(container).join(number.to_string()),
        file,
        from: end,
        next: Some(shown.into()),
    };
    let frames = futures::stream::unfold(follow, async |mut follow| {
        let bytes = follow.next().await?;
        Some((Ok(Frame::data(bytes)), follow))
    });
    Ok(Response::new(StreamBody::new(frames).boxed_unsync()))
}

/// The last lines of a text.
fn tail(content: &str, lines: usize) -> &str {
    let body = content.strip_suffix('\n').unwrap_or(content);
    if lines == 0 {
        return "";
    }
    match body.rmatch_indices('\n').nth(lines - 1) {
        Some((at, _)) => &content[at + 1..],
        None => content,
    }
}

const LOOK: Duration = Duration::from_millis(100);

/// The reader of a log that is still written.
struct Follow {
    running: PathBuf,
    file: PathBuf,
    from: u64,
    next: Option<Bytes>,
}

impl Follow {
    /// The next piece of the log; none after the container has ended.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(next) = self.next.take() {
            return Some(next);
        }
        loop {
            let over = !self.running.exists();
            let mut more = Vec::new();
            let read = fs::File::open(&self.file).and_then(|mut file| {
                file.seek(SeekFrom::Start(self.from))?;
                file.read_to_end(&mut more)
            });
            self.from += read.unwrap_or_default() as u64;
            if !more.is_empty() {
                return Some(more.into());
            }
            if over {
                return None;
            }
            sleep(LOOK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_counted_from_the_end() {
        assert_eq!(tail("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(tail("a\nb", 1), "b");
        assert_eq!(tail("a\nb\n", 7), "a\nb\n");
        assert_eq!((tail("", 3), tail("a\n", 0)), ("", ""));
    }
}
