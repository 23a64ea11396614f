//! The user of a request.

use std::net::{IpAddr, SocketAddr};

use axum::extract::ConnectInfo;
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, ORIGIN};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri};

use super::{Access, Role, Sessions, User};

/// The user of a request, and how the browser has shown it.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: User,
    /// The value of the session's cookie.
    pub(crate) session: Option<String>,
}

/// The reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// It needs a token.
    Anonymous,
    /// No user has its token.
    WrongToken,
    /// It does not come from the reverse proxy, or without the name of a user.
    NotFromProxy,
    /// It does not come from this computer.
    Remote,
    /// Its host is not one of the console's host names.
    Host,
}

impl Access {
    /// Returns the user of a request. `takes_cookies` is false for the API: its clients show a token.
    pub(crate) fn identify(
        &self,
        parts: &Parts,
        sessions: &Sessions,
        takes_cookies: bool,
    ) -> Result<Identity, Denied> {
        let by_name = |user: User| Identity {
            user: self.limited(user),
            session: None,
        };
        if let Some(user) = parts.extensions.get::<User>() {
            return Ok(by_name(user.clone()));
        }
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let peer = peer.map(|ConnectInfo(address)| address.ip().to_canonical());
        if !self.is_known_host(&parts.headers, &parts.uri) {
            return Err(Denied::Host);
        }
        if let Some(user) = bearer(&parts.headers).and_then(|token| self.with_token(token)) {
            return Ok(by_name(user));
        }
        if let Some(session) = session_of(&parts.headers, sessions.cookie()).filter(|_| takes_cookies)
            && let Some(user) = sessions.user(session)
        {
            let session = Some(session.to_owned());
            return Ok(Identity { user, session });
        }
        match (&self.proxy, peer) {
            (Some(_), Some(peer)) if let Some(user) = self.proxied(peer, &parts.headers) => Ok(by_name(user)),
            _ if self.has_tokens() && bearer(&parts.headers).is_some() => Err(Denied::WrongToken),
            _ if self.has_tokens() => Err(Denied::Anonymous),
            (Some(_), _) => Err(Denied::NotFromProxy),
            (None, Some(peer)) if peer.is_loopback() => Ok(by_name(User::new("local", Role::Operate))),
            (None, _) => Err(Denied::Remote),
        }
    }

    /// Returns the user whom the reverse proxy names.
    fn proxied(&self, peer: IpAddr, headers: &HeaderMap) -> Option<User> {
        let proxy = self.proxy.as_ref()?;
        let mut names = headers.get_all(&proxy.header).iter();
        let name = names.next()?.to_str().ok()?;
        // If a proxy adds its header to a client's header of the same name, it is unclear which one to trust.
        if names.next().is_some() || name.is_empty() || !proxy.addresses.contains(&peer) {
            return None;
        }
        let operates = proxy.operators.contains(name) || proxy.operators.contains("*");
        let role = if operates { Role::Operate } else { Role::Read };
        Some(User::new(name, role))
    }

    /// Returns whether the host of a request is one of the console's host names.
    fn is_known_host(&self, headers: &HeaderMap, uri: &Uri) -> bool {
        let Some(host) = authority(headers, uri).map(host_of) else {
            return false;
        };
        let is_local = host.eq_ignore_ascii_case("localhost")
            || host
                .trim_matches(['[', ']'])
                .parse::<IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        match self.requires_authentication() && self.hosts.is_empty() {
            true => true,
            false => is_local || self.hosts.contains(&host.to_ascii_lowercase()),
        }
    }
}

/// Returns host and port that a request is for.
fn authority<'a>(headers: &'a HeaderMap, uri: &'a Uri) -> Option<&'a str> {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok());
    host.or_else(|| uri.authority().map(|authority| authority.as_str()))
}

/// Returns whether a browser reports that a page of another site has caused the request.
pub(crate) fn is_cross_site(headers: &HeaderMap, uri: &Uri) -> bool {
    let text = |name: HeaderName| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    // Every current browser sends it, and unlike a comparison of hosts it is correct with every reverse proxy.
    if let Some(site) = text(HeaderName::from_static("sec-fetch-site")) {
        return !matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(ORIGIN) else {
        return false;
    };
    let origin = origin.split_once("://").map(|(_, authority)| authority);
    match (origin, authority(headers, uri)) {
        // A reverse proxy may pass on the name only.
        (Some(origin), Some(host)) if host == host_of(host) => host_of(origin) != host,
        (Some(origin), Some(host)) => origin != host,
        _ => true,
    }
}

/// Returns the host of `host:port`.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|digit| digit.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn session_of<'a>(headers: &'a HeaderMap, cookie: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).into_iter();
    let mut pairs = cookies.filter_map(|cookies| cookies.to_str().ok());
    pairs.find_map(|cookies| {
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        pairs.find(|(name, _)| *name == cookie).map(|(_, value)| value)
    })
}
