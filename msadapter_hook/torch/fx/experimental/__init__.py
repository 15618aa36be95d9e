"""torch.fx.experimental: what libraries ask for."""
