//! Distances on the earth by the formulas of navigation, which the example `partitions` does not use.

/// Latitude and longitude in degrees.
pub(crate) type Place = (f64, f64);

/// Returns the angle between two places in radians, by the haversine formula.
fn angle(from: Place, to: Place) -> f64 {
    let (latitude, longitude) = (
        (to.0 - from.0).to_radians() / 2.0,
        (to.1 - from.1).to_radians() / 2.0,
    );
    let haversine = latitude.sin().powi(2)
        + from.0.to_radians().cos() * to.0.to_radians().cos() * longitude.sin().powi(2);
    2.0 * haversine.sqrt().asin()
}

/// Returns the miles between two places.
pub(crate) fn miles(from: Place, to: Place) -> f64 {
    3_959.0 * angle(from, to)
}

/// Returns the place at this fraction of the great circle between two: on the course, at the distance.
pub(crate) fn between(from: Place, to: Place, part: f64) -> Place {
    let way = part * angle(from, to);
    let (latitude, other) = (from.0.to_radians(), to.0.to_radians());
    let east = (to.1 - from.1).to_radians();
    let course = (east.sin() * other.cos())
        .atan2(latitude.cos() * other.sin() - latitude.sin() * other.cos() * east.cos());
    let there = (latitude.sin() * way.cos() + latitude.cos() * way.sin() * course.cos()).asin();
    let along = (course.sin() * way.sin() * latitude.cos()).atan2(way.cos() - latitude.sin() * there.sin());
    (there.to_degrees(), from.1 + along.to_degrees())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_distances() {
        let (new_york, los_angeles) = ((40.6398, -73.7787), (33.9425, -118.4081));
        // The earth is not a sphere.
        assert!((miles(new_york, los_angeles) / 2_475.0 - 1.0).abs() < 0.005);
        let half = between(new_york, los_angeles, 0.5);
        let both = (miles(new_york, half), miles(half, los_angeles));
        assert!((both.0 - both.1).abs() < 1e-6, "{both:?}");
        assert!(
            (both.0 + both.1 - miles(new_york, los_angeles)).abs() < 1e-6,
            "{both:?}"
        );
    }
}
