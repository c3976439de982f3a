"""A recipe of one's own for tune run."""

import of_torch
from torchtune import config


@config.parse
def main(settings):
    assert settings.steps == of_torch.witness.STEPS
    of_torch.train()


if __name__ == "__main__":
    main()
