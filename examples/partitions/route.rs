//! Points on the earth, as a sphere, and on great circles.

/// A point, as its direction from the centre of the earth.
#[derive(Clone, Copy)]
pub(crate) struct Point {
    x: f64,
    y: f64,
    z: f64,
}

impl Point {
    /// Returns the point at this latitude and longitude, in degrees.
    pub(crate) fn at(latitude: f64, longitude: f64) -> Self {
        let (latitude, longitude) = (latitude.to_radians(), longitude.to_radians());
        Self {
            x: latitude.cos() * longitude.cos(),
            y: latitude.cos() * longitude.sin(),
            z: latitude.sin(),
        }
    }

    /// Returns the nearness of another point: the cosine of the angle between them, 1 for the same point.
    pub(crate) fn nearness(self, other: Self) -> f64 {
        self.x * other.x + self.y * other.y + self.z * other.z
    }

    /// Returns the point at this fraction of the great circle to another point.
    pub(crate) fn on_the_way_to(self, other: Self, part: f64) -> Self {
        let angle = self.nearness(other).clamp(-1.0, 1.0).acos();
        if angle == 0.0 {
            return self;
        }
        let here = ((1.0 - part) * angle).sin() / angle.sin();
        let there = (part * angle).sin() / angle.sin();
        Self {
            x: here * self.x + there * other.x,
            y: here * self.y + there * other.y,
            z: here * self.z + there * other.z,
        }
    }
}
