//! The server of these tests.

use batch_test_servers::ObjectServer;

/// The client works, and nothing is left of a dropped server.
#[test]
fn an_object_server_ends_with_its_owner() {
    let server = ObjectServer::start();
    let address = server.endpoint().trim_start_matches("http://").to_owned();
    std::net::TcpStream::connect(&address).unwrap();
    let bucket = server.new_bucket();
    server.put(&format!("{bucket}/a/b.txt"), "text");
    assert_eq!(server.get(&format!("{bucket}/a/b.txt")).unwrap(), b"text");
    assert_eq!(server.keys(&bucket), ["a/b.txt"]);
    assert!(server.uploads(&bucket).is_empty());
    server.delete(&format!("{bucket}/a/b.txt"));
    assert_eq!(server.get(&format!("{bucket}/a/b.txt")), None);
    drop(server);
    std::net::TcpStream::connect(&address).unwrap_err();
}
