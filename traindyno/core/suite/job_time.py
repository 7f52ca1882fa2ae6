"""The time for which a job may be billed beyond its time limit."""

# SageMaker bills the download of the image, and its limit may begin after it: whether it does is
# not documented. 10 GB take 4 to 8 minutes.
IMAGE_SECONDS = 480

# SageMaker gives a stopped job two minutes after SIGTERM, ends it with SIGKILL, and bills them.
STOP_SECONDS = 120
# The upload of the outputs. SageMaker has no limit for it; the local service ends it after this
# time.
UPLOAD_SECONDS = 300
# Between the limit and SIGTERM, between SIGKILL and the upload, and for rounding.
MARGIN_SECONDS = 60
ENDING_SECONDS = STOP_SECONDS + UPLOAD_SECONDS + MARGIN_SECONDS
