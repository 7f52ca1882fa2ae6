"""Entry point of a training job."""

from training.main import main

if __name__ == "__main__":
    main()
