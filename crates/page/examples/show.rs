//! Serves the page with sample facts on loopback, for pictures: `show PORT`.

#[path = "show/routes.rs"]
mod routes;
#[path = "show/sample.rs"]
mod sample;

use page::facts;
use tokio::net::TcpListener;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let port: u16 = std::env::args().nth(1).unwrap_or_default().parse()?;
    let (routes, _changes) = routes::routes();
    axum::serve(TcpListener::bind(("127.0.0.1", port)).await?, routes).await?;
    Ok(())
}
