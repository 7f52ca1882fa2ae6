"""The statistics of trials, wherever they ran: columns in, a finding out."""
