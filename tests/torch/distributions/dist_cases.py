# Distributions whose draws, densities and moments are compared with PyTorch's; the recorder and the tests run these.
def make(t):
    """name -> function that makes a distribution, over a module `t` like torch."""
    D = t.distributions
    v = t.tensor
    L = v([[1.0, 0.0, 0.0], [0.5, 1.2, 0.0], [-0.3, 0.4, 0.8]])
    S = L @ L.T
    pr = v([0.2, 0.5, 0.3])
    return {
        "Normal": lambda: D.Normal(v([0.5, -1.0]), v([1.0, 2.0])),
        "Bernoulli": lambda: D.Bernoulli(v([0.3, 0.8])),
        "BernoulliLogits": lambda: D.Bernoulli(logits=v([-0.3, 0.8])),
        "Beta": lambda: D.Beta(v([0.5, 2.0]), v([1.5, 3.0])),
        "Binomial": lambda: D.Binomial(10, v([0.3, 0.8])),
        "Categorical": lambda: D.Categorical(pr),
        "CategoricalLogits": lambda: D.Categorical(logits=v([[0.1, -1.0], [2.0, 0.0]])),
        "Cauchy": lambda: D.Cauchy(v([0.5, -1.0]), v([1.0, 2.0])),
        "Chi2": lambda: D.Chi2(v([1.0, 4.0])),
        "ContinuousBernoulli": lambda: D.ContinuousBernoulli(v([0.3, 0.5, 0.9])),
        "Dirichlet": lambda: D.Dirichlet(v([0.5, 1.0, 2.0])),
        "Exponential": lambda: D.Exponential(v([0.5, 2.0])),
        "FisherSnedecor": lambda: D.FisherSnedecor(v([5.0, 6.0]), v([7.0, 8.0])),
        "Gamma": lambda: D.Gamma(v([0.5, 2.0]), v([1.5, 3.0])),
        "GeneralizedPareto": lambda: D.GeneralizedPareto(v([0.0, 1.0]), v([1.0, 2.0]), v([0.2, 0.0])),
        "Geometric": lambda: D.Geometric(v([0.3, 0.8])),
        "Gumbel": lambda: D.Gumbel(v([0.5, -1.0]), v([1.0, 2.0])),
        "HalfCauchy": lambda: D.HalfCauchy(v([1.0, 2.0])),
        "HalfNormal": lambda: D.HalfNormal(v([1.0, 2.0])),
        "Independent": lambda: D.Independent(D.Normal(t.zeros(3, 2), t.ones(3, 2)), 1),
        "InverseGamma": lambda: D.InverseGamma(v([3.5, 2.5]), v([1.5, 3.0])),
        "Kumaraswamy": lambda: D.Kumaraswamy(v([0.5, 2.0]), v([1.5, 3.0])),
        "LKJCholesky": lambda: D.LKJCholesky(3, v([0.5, 2.0])),
        "Laplace": lambda: D.Laplace(v([0.5, -1.0]), v([1.0, 2.0])),
        "LogNormal": lambda: D.LogNormal(v([0.5, -1.0]), v([1.0, 0.5])),
        "LogisticNormal": lambda: D.LogisticNormal(v([0.5, -1.0]), v([1.0, 0.5])),
        "LowRank": lambda: D.LowRankMultivariateNormal(v([0.5, -1.0, 0.0]), v([[1.0], [0.5], [0.2]]), v([1.0, 0.5, 0.3])),
        "Mixture": lambda: D.MixtureSameFamily(D.Categorical(pr), D.Normal(v([0.0, 1.0, 5.0]), v([1.0, 2.0, 0.5]))),
        "Multinomial": lambda: D.Multinomial(7, pr),
        "MVN": lambda: D.MultivariateNormal(v([0.5, -1.0, 0.0]), S),
        "MVNtril": lambda: D.MultivariateNormal(t.zeros(2, 3), scale_tril=L),
        "MVNprecision": lambda: D.MultivariateNormal(t.zeros(3), precision_matrix=S),
        "NegativeBinomial": lambda: D.NegativeBinomial(v([3.0, 5.0]), v([0.3, 0.6])),
        "OneHot": lambda: D.OneHotCategorical(pr),
        "OneHotST": lambda: D.OneHotCategoricalStraightThrough(pr),
        "Pareto": lambda: D.Pareto(v([1.0, 2.0]), v([3.0, 2.5])),
        "Poisson": lambda: D.Poisson(v([0.5, 4.0])),
        "RelaxedBernoulli": lambda: D.RelaxedBernoulli(v(0.5), v([0.3, 0.8])),
        "RelaxedOneHot": lambda: D.RelaxedOneHotCategorical(v(0.5), pr),
        "StudentT": lambda: D.StudentT(v([3.0, 5.0]), v([0.0, 1.0]), v([1.0, 2.0])),
        "Transformed": lambda: D.TransformedDistribution(
            D.Uniform(v([0.0, 0.0]), v([1.0, 1.0])),
            [D.SigmoidTransform().inv, D.AffineTransform(v(1.0), v([2.0, 3.0]))],
        ),
        "Uniform": lambda: D.Uniform(v([0.0, -1.0]), v([1.0, 2.0])),
        "VonMises": lambda: D.VonMises(v([0.0, 1.0]), v([1.0, 4.0])),
        "Weibull": lambda: D.Weibull(v([1.0, 2.0]), v([1.5, 0.7])),
        "Wishart": lambda: D.Wishart(v(5.0), S),
    }


def flat(x):
    """A tensor as shape and numbers that JSON can hold."""
    x = x.detach()
    return [list(x.shape), [float(n) for n in x.reshape(-1).tolist()]]


def describe(t, d):
    """Draws, densities, moments and the repr; what a distribution does not have is left out."""
    out = {"repr": repr(d)}
    t.manual_seed(11)
    x = d.sample((4,))
    out["sample"] = flat(x)
    out["after"] = flat(t.rand(2))
    out["log_prob"] = flat(d.log_prob(x))
    if d.has_rsample:
        t.manual_seed(3)
        out["rsample"] = flat(d.rsample())
    for name in ("mean", "variance", "mode", "stddev"):
        try:
            out[name] = flat(getattr(d, name))
        except (NotImplementedError, AttributeError):
            continue
    for name, call in (
        ("entropy", lambda: d.entropy()),
        ("cdf", lambda: d.cdf(x)),
        ("icdf", lambda: d.icdf(t.full(d.batch_shape, 0.3))),
        ("enumerate", lambda: d.enumerate_support()),
        ("expanded", lambda: d.expand((2,) + tuple(d.batch_shape)).log_prob(x[:2].unsqueeze(1))),
    ):
        try:
            out[name] = flat(call())
        except NotImplementedError:
            continue
    out["support"] = repr(d.support).split("(")[0]
    return out


def divergences(t, dists):
    """(p, q) -> KL for all pairs of univariate families, and within the multivariate ones."""
    simple = ["Normal", "Bernoulli", "Beta", "Binomial", "Cauchy", "ContinuousBernoulli", "Exponential", "Gamma",
              "Geometric", "Gumbel", "HalfNormal", "Laplace", "LogNormal", "Pareto", "Poisson", "Uniform", "MVN",
              "MVNtril", "LowRank", "Dirichlet", "Categorical", "OneHot", "Independent", "Chi2"]  # fmt: skip
    out = {}
    for p in simple:
        for q in simple:
            try:
                value = t.distributions.kl_divergence(dists[p](), dists[q]())
            except (NotImplementedError, RuntimeError, ValueError):
                continue
            out[f"{p} {q}"] = flat(value)
    return out


def transforms(t):
    """name -> (transform, input)."""
    T, v = t.distributions.transforms, t.tensor
    x = v([[0.3, -0.7, 1.2], [2.0, 0.1, -1.5]])
    D = t.distributions
    return {
        "exp": (T.ExpTransform(), x),
        "power": (T.PowerTransform(v(2.5)), x.abs()),
        "sigmoid": (T.SigmoidTransform(), x),
        "tanh": (T.TanhTransform(), x),
        "softplus": (T.SoftplusTransform(), x),
        "affine": (T.AffineTransform(v(1.0), v([2.0, -3.0, 0.5]), event_dim=1), x),
        "corr": (T.CorrCholeskyTransform(), x),
        "stick": (T.StickBreakingTransform(), x),
        "reshape": (T.ReshapeTransform((3,), (3, 1)), x),
        "cat": (T.CatTransform([T.ExpTransform(), T.TanhTransform()], dim=1, lengths=[1, 2]), x),
        "stack": (T.StackTransform([T.ExpTransform(), T.TanhTransform(), T.SigmoidTransform()], dim=1), x),
        "compose": (T.ComposeTransform([T.AffineTransform(0.5, 2.0), T.TanhTransform()]), x),
        "independent": (T.IndependentTransform(T.ExpTransform(), 1), x),
        "cdf": (T.CumulativeDistributionTransform(D.Normal(v(0.0), v(1.0))), x),
        "inverse": (T.SigmoidTransform().inv, x.sigmoid()),
        "biject simplex": (D.biject_to(D.constraints.simplex), x),
        "biject interval": (D.biject_to(D.constraints.interval(-1.0, 2.0)), x),
        "biject greater": (D.biject_to(D.constraints.greater_than(1.5)), x),
        "biject less": (D.biject_to(D.constraints.less_than(1.5)), x),
    }


def run_transform(transform, x):
    """Output, inverse of the output, log det jacobian."""
    y = transform(x)
    return [flat(y), flat(transform.inv(y)), flat(transform.log_abs_det_jacobian(x, y))]
