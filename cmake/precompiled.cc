// A set of precompiled headers belongs to a target, and a target has a source.
