"""A trained model as an endpoint or a transform job: what is deployed, whether it answers rightly, what it costs."""
